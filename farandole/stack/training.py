"""Java's ahead-of-time cache for Kafka: made once by a broker that starts and stops, it halves every later start.

Measured with Java 25 on 2 cores: 0.7 s with it, 1.7 s without, for 7 s once and 67 MB in the shared cache folder.
Nothing depends on it: Java passes over one that does not fit, and where none can be made the broker starts without.
"""

from __future__ import annotations

import hashlib
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from farandole.stack import ports, probe, process
from farandole.stack.broker import FLAGS, Node
from farandole.stack.state import exclusive

#: Seconds for each part of the training, which take 1, 2 and 5.
PATIENCE = 60
#: Seconds. A cache belongs to one virtual environment's Java; one that nobody used this long is removed.
UNUSED = 30 * 24 * 3600


def archive(node: Node, cache: Path, say: Callable[[str], None]) -> Path | None:
    """The cache for this Java, these jars and these flags, made now if there is none; None where that failed before."""
    target = cache / f"kafka-{_key(node)}.aot"
    failed = target.with_suffix(".failed")
    if not target.exists() and not failed.exists():
        with exclusive(target.with_suffix(".lock")):
            if not target.exists() and not failed.exists():
                say("preparing Kafka for fast starts (once, about 7 s)")
                _make(node, cache, target, failed)
    if not target.exists():
        return None
    target.touch()
    for other in cache.glob("kafka-*.aot"):
        if time.time() - other.stat().st_mtime > UNUSED:
            other.unlink(missing_ok=True)
    return target


def _make(node: Node, cache: Path, target: Path, failed: Path) -> None:
    with TemporaryDirectory(dir=cache, prefix="training-") as folder:
        draft = Path(folder) / target.name
        if _train(node, Path(folder), draft):
            draft.replace(target)
        else:
            failed.touch()


def _key(node: Node) -> str:
    """What Java checks before it uses a cache: itself, down to the age of its modules, and the jars by name."""
    modules = node.java.command.parents[1] / "lib" / "modules"
    age = modules.stat().st_mtime_ns if modules.exists() else 0
    recipe = [str(node.java.command), node.java.version, str(age), *FLAGS, *(jar.name for jar in node.classpath)]
    return hashlib.sha256("\n".join(recipe).encode()).hexdigest()[:12]


def _train(node: Node, home: Path, draft: Path) -> bool:
    """Start a broker on ports and data of its own, let it serve, stop it; Java writes the cache at its end."""
    port = ports.choose({node.port, node.controller_port})
    trainee = replace(node, home=home, port=port, controller_port=ports.choose({port, node.port, node.controller_port}))
    trainee.configure(home / "data")
    with (home / "out").open("wb") as output:

        def run(command: list[str]) -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                command,
                env=trainee.environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

        try:
            if run(trainee.formatting()).wait(PATIENCE):
                return False
            broker = run(trainee.serving(f"-XX:AOTCacheOutput={draft}"))
            deadline = time.monotonic() + PATIENCE
            while not (probe.lives(port) and probe.coordinates(port)):
                if broker.poll() is not None or time.monotonic() > deadline:
                    return False
                time.sleep(process.POLL)
            broker.send_signal(signal.SIGTERM)
            broker.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return False
        finally:
            process.kill(node.mark)
    return draft.exists()

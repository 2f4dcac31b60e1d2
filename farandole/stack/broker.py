"""The command lines and the configuration of one Kafka node: what is run, apart from when."""

from __future__ import annotations

import base64
import os
import secrets
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from farandole.stack import state
from farandole.stack.java import ENVIRONMENT, Java

#: Megabytes of heap; enough for what 2 cores can send through one broker.
HEAP = 512
FLAGS = (
    f"-Xmx{HEAP}m",
    "-XX:+UseSerialGC",  # no collector threads beside the broker's on a laptop, and the smallest footprint
    "-XX:+ExitOnOutOfMemoryError",  # a crashed broker is seen and restarted, a starved one only hangs
    "-XX:-UsePerfData",
    "-Xlog:disable",  # what the JVM warns about (its cache was made on another machine) is nothing a user can act on
    "-Xlog:all=error:stderr",
    "-Djava.awt.headless=true",
    "--enable-native-access=ALL-UNNAMED",  # with the next: two pages of warnings fewer in kafka.out
    "--sun-misc-unsafe-memory-access=allow",
)


@dataclass(frozen=True, slots=True)
class Node:
    """One broker: its Java, its jars, its files and its ports."""

    java: Java
    classpath: list[Path]
    mark: str
    home: Path
    port: int
    controller_port: int

    @property
    def environment(self) -> dict[str, str]:
        return {**ENVIRONMENT, "CLASSPATH": os.pathsep.join(map(str, self.classpath))}

    @property
    def log(self) -> Path:
        return self.home / "kafka.log"

    def configure(self, folder: Path) -> None:
        """Write its configuration, with data in `folder`; anew at every start, so that it is always this version's."""
        self.home.mkdir(parents=True, exist_ok=True)
        settings = _resource("kafka.properties")
        for word, value in (("port", self.port), ("controller_port", self.controller_port), ("folder", folder)):
            settings = settings.replace(f"{{{word}}}", _escaped(str(value)))
        state.write(self.home / "kafka.properties", settings)
        state.write(self.home / "log4j2.properties", _resource("log4j2.properties"))

    def formatting(self) -> list[str]:
        """The command that formats the log folder."""
        cluster = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
        if cluster.startswith("-"):  # the tool would take it for an option
            cluster = f"A{cluster[1:]}"
        tool = ("-XX:TieredStopAtLevel=1", *self._properties(), "kafka.tools.StorageTool", "format")
        return [*self._java(), *tool, "-t", cluster, "-c", str(self.home / "kafka.properties")]

    def serving(self, *flags: str) -> list[str]:
        """The command that runs the broker."""
        return [*self._java(), *flags, *self._properties(), "kafka.Kafka", str(self.home / "kafka.properties")]

    def _java(self) -> list[str]:
        return [str(self.java.command), *FLAGS]

    def _properties(self) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self.home / 'log4j2.properties'}"
        return [f"-Dfarandole.stack={self.mark}", f"-Dfarandole.log={self.log}", logging]


def _resource(name: str) -> str:
    return files("farandole.stack").joinpath(name).read_text(encoding="utf-8")


def _escaped(value: str) -> str:
    """A value as Java reads it from a file of properties, which it takes for Latin-1."""
    units = value.replace("\\", "\\\\").encode("utf-16-be").hex()
    letters = (int(units[at : at + 4], 16) for at in range(0, len(units), 4))
    return "".join(chr(one) if one < 128 else f"\\u{one:04x}" for one in letters)

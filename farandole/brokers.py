"""Which Kafka the brokers are, by the metadata versions they know: the only sign of a release that a client can see."""

from __future__ import annotations

import socket
import struct
from io import BytesIO
from typing import BinaryIO

from farandole import kafka
from farandole.settings import Settings

#: Releases some of whose versions drop transactions' markers (KAFKA-20734), by the highest metadata version they know.
#: The last digit of a version shows nowhere: 4.3.0 and a later 4.3 that is mended answer the same.
SUSPECTS = {30: "4.3", 31: "4.4", 32: "4.4", 33: "4.4"}
#: The request, in the first version whose answer names features.
API_VERSIONS, VERSION = 18, 3
#: Bytes; the answer has some 600.
LONGEST_ANSWER = 1 << 20
SUPPORTED_FEATURES = 0


def suspects(settings: Settings) -> list[str]:
    """The releases among the cluster's brokers that SUSPECTS names; a broker that does not tell is none of them.

    Raises KafkaException when the cluster does not answer.
    """
    brokers = kafka.admin(settings).list_topics(timeout=kafka.ANSWER).brokers.values()
    known = {metadata_version(str(broker.host), broker.port) for broker in brokers}
    return sorted({SUSPECTS[version] for version in known if version in SUSPECTS})


def metadata_version(host: str, port: int) -> int | None:
    """The highest metadata version that the broker's software knows; None when it does not tell."""
    client = b"\x0afarandole" + b"\x020"  # its name and its version, each led by its length plus one; none is refused
    message = struct.pack(">hhihB", API_VERSIONS, VERSION, 1, -1, 0) + client + b"\x00"
    try:
        with socket.create_connection((host, port), kafka.ANSWER) as link, link.makefile("rb") as answer:
            link.sendall(struct.pack(">i", len(message)) + message)
            (length,) = struct.unpack(">i", _take(answer, 4))
            return features(_take(answer, min(length, LONGEST_ANSWER))).get("metadata.version")
    except (OSError, EOFError):  # away at the moment, or no Kafka of the Apache kind: nothing is known of it
        return None


def features(answer: bytes) -> dict[str, int]:
    """The highest level of each feature in an answer to ApiVersions; none from a broker too old for this version.

    Raises EOFError when the answer ends in the middle.
    """
    body = BytesIO(answer)
    _, error = struct.unpack(">ih", _take(body, 6))
    if error:
        return {}
    _take(body, 7 * (_number(body) - 1) + 4)  # each request's key, lowest and highest version; the throttle time
    for _ in range(_number(body)):
        tag, length = _number(body), _number(body)
        content = BytesIO(_take(body, length))
        if tag == SUPPORTED_FEATURES:
            return dict(_feature(content) for _ in range(_number(content) - 1))
    return {}


def _feature(content: BinaryIO) -> tuple[str, int]:
    name = _take(content, _number(content) - 1).decode("ascii", "replace")
    _, highest, _ = struct.unpack(">hhB", _take(content, 5))
    return name, highest


def _number(content: BinaryIO) -> int:
    """Kafka's unsigned varint: seven bits a byte, the lowest first."""
    value = shift = 0
    while True:
        (byte,) = _take(content, 1)
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
        shift += 7


def _take(content: BinaryIO, size: int) -> bytes:
    taken = content.read(size)
    if len(taken) < size:
        raise EOFError
    return taken

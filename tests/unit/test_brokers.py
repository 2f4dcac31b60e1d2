"""What a broker's answer to ApiVersions tells of it, and that one which tells nothing is nobody's fault."""

from __future__ import annotations

import socket
import struct
import threading

import pytest

from farandole import brokers

#: Correlation id, no error, two requests, no throttle.
HEAD = struct.pack(">ihB", 1, 0, 3) + bytes(14) + bytes(4)
LEVELS = struct.pack(">hhB", 7, 30, 0)
SUPPORTED = b"\x03" + b"\x0egroup.version" + struct.pack(">hhB", 0, 1, 0) + b"\x11metadata.version" + LEVELS


def tagged(*fields: tuple[int, bytes]) -> bytes:
    return bytes([len(fields)]) + b"".join(bytes([tag, len(content)]) + content for tag, content in fields)


def test_the_highest_level_of_each_supported_feature_is_read() -> None:
    answer = HEAD + tagged((1, bytes(8)), (0, SUPPORTED))
    assert brokers.features(answer) == {"group.version": 1, "metadata.version": 30}


def test_an_answer_of_many_requests_is_passed_over() -> None:
    head = struct.pack(">ihBB", 1, 0, 0x81 | 0x80, 0x01) + bytes(7 * 128) + bytes(4)
    assert brokers.features(head + tagged((0, SUPPORTED)))["metadata.version"] == 30


@pytest.mark.parametrize("answer", [HEAD + tagged(), HEAD + tagged((2, b"x")), struct.pack(">ih", 1, 35) + bytes(9)])
def test_a_broker_that_names_no_features_has_none(answer: bytes) -> None:
    assert brokers.features(answer) == {}


def test_an_answer_cut_short_is_an_error_and_not_a_version() -> None:
    whole = HEAD + tagged((0, SUPPORTED))
    for length in range(len(whole)):
        with pytest.raises(EOFError):
            brokers.features(whole[:length])


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", struct.pack(">i", 600) + HEAD])
def test_of_a_stranger_nothing_is_known(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            link, _ = server.accept()
            with link:
                link.recv(1000)
                link.sendall(answer)

        stranger = threading.Thread(target=serve)
        stranger.start()
        assert brokers.metadata_version("127.0.0.1", server.getsockname()[1]) is None
        stranger.join()


def test_of_nobody_nothing_is_known() -> None:
    assert brokers.metadata_version("127.0.0.1", 1) is None

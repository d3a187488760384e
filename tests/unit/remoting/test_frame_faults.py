"""The log lines about malformed frames: the limit per minute, and the named protocols."""

import logging

import pytest

from core_broker.errors import ProtocolError
from core_broker.limits import FRAME_BYTES_MAX
from core_broker.remoting.frame_faults import LINES_PER_MINUTE_MAX, FrameFaultLog
from core_broker.remoting.frames import FrameSplitter
from tests.unit.remoting.peers import Loopback, echo, until

TLS_CLIENT_HELLO = bytes.fromhex("16030102000100 01fc0303".replace(" ", "")) + bytes(40)
TLS_ALERT = bytes.fromhex("15030100020228")


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "this looks like HTTP;"),
        (b"POST /api HTTP/1.1\r\n", "this looks like HTTP;"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "this looks like HTTP;"),
        (b"HTTP/1.1 200 OK\r\n", "this looks like HTTP;"),
        (TLS_CLIENT_HELLO, "this looks like a TLS ClientHello;"),
        (TLS_ALERT + b"..", "longer than the limit"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "longer than the limit"),
        ((FRAME_BYTES_MAX + 1).to_bytes(4, "big") + bytes(4), "longer than the limit"),
    ],
)
def test_http_and_tls_are_named(data: bytes, named: str) -> None:
    splitter = FrameSplitter()
    assert splitter.feed(data) == []
    assert named in str(splitter.fault)
    assert splitter.oversize


def test_lines_are_limited_per_minute_and_the_rest_is_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now_s = 1000.0
    faults = FrameFaultLog("broker", lambda: now_s)
    for number in range(LINES_PER_MINUTE_MAX + 500):
        faults.write(f"h:{number}", ProtocolError("bad"))
    assert len(caplog.messages) == LINES_PER_MINUTE_MAX
    assert caplog.messages[0] == "broker: closing h:0: bad"
    now_s += 59.9
    faults.end_minute()
    assert len(caplog.messages) == LINES_PER_MINUTE_MAX
    now_s += 0.1
    faults.end_minute()
    faults.end_minute()
    assert len(caplog.messages) == LINES_PER_MINUTE_MAX + 1
    assert "closed 500 more connections because of malformed frames" in caplog.messages[-1]
    faults.write("h:1", ProtocolError("again"))
    assert caplog.messages[-1] == "broker: closing h:1: again"


async def test_a_server_logs_few_lines_and_counts_all(
    loopback: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    server = await loopback.server(echo)
    count = LINES_PER_MINUTE_MAX + 5
    for _ in range(count):
        peer = await loopback.peer(server)
        await peer.send(b"GET / HTTP/1.1\r\n\r\n")
        assert await peer.at_end() == b""
    await until(lambda: server.counters.oversize == count)
    lines = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert len(lines) == LINES_PER_MINUTE_MAX
    assert "this looks like HTTP" in lines[0].getMessage()

"""The watchdog of the event loop, and the budget of the slow path in one iteration."""

import asyncio
import logging
import time

import pytest

from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.endpoint import Limits
from core_broker.remoting.loop_watchdog import (
    HOLD_MS_MAX,
    LOG_INTERVAL_S,
    STEPS_MAX,
    WAIT_WARNING_MS,
    LoopWatchdog,
)
from tests.unit.remoting.peers import Loopback, request, until

SLOW, QUICK = 77, 78


class Clocks:
    """The two clocks of a watchdog; `run` lets a thread compute and wait."""

    def __init__(self) -> None:
        self.wall = 100.0
        self.cpu = 5.0

    def run(self, *, computed_ms: float = 0, waited_ms: float = 0) -> None:
        self.wall += (computed_ms + waited_ms) / 1000
        self.cpu += computed_ms / 1000


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def watchdog(clocks: Clocks) -> LoopWatchdog:
    return LoopWatchdog("test", lambda: clocks.wall, lambda: clocks.cpu)


def compute(milliseconds: float) -> None:
    """Use CPU time of the thread."""
    end = time.thread_time() + milliseconds / 1000
    while time.thread_time() < end:
        pass


def test_steps_over_the_limit_are_counted_with_their_cause(
    watchdog: LoopWatchdog, clocks: Clocks
) -> None:
    for computed_ms, waited_ms in ((HOLD_MS_MAX, 0), (80, 0), (90, 10), (10, 70)):
        begin = watchdog.begin()
        clocks.run(computed_ms=computed_ms, waited_ms=waited_ms)
        watchdog.end(begin, "request", 25, "10.0.0.1:1")
    assert watchdog.counts() == {("request", "25", "cpu"): 2, ("request", "25", "wait"): 1}
    assert watchdog.varz() == [
        {"step": "request", "request_code": "25", "cause": "cpu", "count": 2, "longest_ms": 100},
        {"step": "request", "request_code": "25", "cause": "wait", "count": 1, "longest_ms": 80},
    ]


def test_a_hold_is_counted_by_its_innermost_step(watchdog: LoopWatchdog, clocks: Clocks) -> None:
    outer = watchdog.begin()
    clocks.run(computed_ms=30)
    inner = watchdog.begin()
    clocks.run(computed_ms=60)
    watchdog.end(inner, "save_offsets")
    clocks.run(computed_ms=40)
    watchdog.end(outer, "iteration_end")
    assert watchdog.counts() == {("save_offsets", "", "cpu"): 1}
    outer = watchdog.begin()
    clocks.run(computed_ms=60)
    watchdog.end(watchdog.begin(), "save_offsets")
    watchdog.held(outer.wall, "iteration_end")
    assert list(watchdog.counts().values()) == [1, 1]


def test_the_number_of_steps_is_bounded(watchdog: LoopWatchdog, clocks: Clocks) -> None:
    for code in range(STEPS_MAX + 20):
        begin = watchdog.begin()
        clocks.run(computed_ms=60)
        watchdog.end(begin, "request", code)
    assert len(watchdog.counts()) == STEPS_MAX + 1
    assert watchdog.counts()["other", "", "cpu"] == 20


async def test_log_lines_are_rate_limited(
    watchdog: LoopWatchdog, clocks: Clocks, caplog: pytest.LogCaptureFixture
) -> None:
    watchdog.start()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            begin = watchdog.begin()
            clocks.run(computed_ms=60)
            watchdog.end(begin, "request", 25, "10.0.0.1:1")
        clocks.run(waited_ms=LOG_INTERVAL_S * 1000)
        begin = watchdog.begin()
        clocks.run(computed_ms=70, waited_ms=5)
        watchdog.end(begin, "save_offsets")
    watchdog.stop()
    assert caplog.messages == [
        "test: request code 25 of 10.0.0.1:1 held the event loop for 60 ms, of which 60 ms CPU "
        "time",
        "test: step save_offsets held the event loop for 75 ms, of which 70 ms CPU time; "
        "2 more holds since the last line",
    ]


async def test_short_waits_are_no_warnings(
    watchdog: LoopWatchdog, clocks: Clocks, caplog: pytest.LogCaptureFixture
) -> None:
    """Lines of a level are limited on their own, so a short wait hides no warning."""
    watchdog.start()
    with caplog.at_level(logging.INFO):
        for computed_ms, waited_ms in (
            (0, HOLD_MS_MAX + 10),
            (0, WAIT_WARNING_MS - 10),
            (HOLD_MS_MAX + 10, 0),
            (0, WAIT_WARNING_MS + 10),
        ):
            begin = watchdog.begin()
            clocks.run(computed_ms=computed_ms, waited_ms=waited_ms)
            watchdog.end(begin, "save_offsets")
        clocks.run(waited_ms=LOG_INTERVAL_S * 1000)
        begin = watchdog.begin()
        clocks.run(waited_ms=WAIT_WARNING_MS + 10)
        watchdog.end(begin, "save_offsets")
    watchdog.stop()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "test: step save_offsets held the event loop for 60 ms, of which 0 ms CPU time"),
        (
            "WARNING",
            "test: step save_offsets held the event loop for 60 ms, of which 60 ms CPU time",
        ),
        (
            "WARNING",
            "test: step save_offsets held the event loop for 510 ms, of which 0 ms CPU time; "
            "1 more holds since the last line",
        ),
    ]


async def test_a_server_names_the_request_code(loopback: Loopback) -> None:
    def dispatch(connection: Connection, command: RemotingCommand) -> RemotingCommand:
        if command.code == SLOW:
            compute(HOLD_MS_MAX + 10)
        return RemotingCommand.response()

    server = await loopback.server(dispatch)
    peer = await loopback.peer(server)
    await peer.send(request(QUICK, 1), request(SLOW, 2), request(QUICK, 3))
    assert [(await peer.receive()).opaque for _ in range(3)] == [1, 2, 3]
    assert server.watchdog.counts()["request", str(SLOW), "cpu"] == 1


async def test_a_server_notices_other_callbacks(loopback: Loopback) -> None:
    server = await loopback.server(lambda *_: RemotingCommand.response())
    asyncio.get_running_loop().call_soon(compute, 3 * HOLD_MS_MAX)
    await until(lambda: server.watchdog.counts().get(("callbacks", "", "cpu")) == 1)


async def test_pipelined_slow_requests_do_not_starve_other_peers(loopback: Loopback) -> None:
    """Every slow request uses up the budget, so the other peer is answered between two of them."""
    handled: list[int] = []

    def dispatch(connection: Connection, command: RemotingCommand) -> RemotingCommand:
        handled.append(command.code)
        if command.code == SLOW:
            compute(Limits().iteration_budget_s * 1000)
        return RemotingCommand.response()

    server = await loopback.server(dispatch)
    hostile, other = await loopback.peer(server), await loopback.peer(server)
    count = 100
    await hostile.send(*(request(SLOW, opaque) for opaque in range(count)))
    await until(lambda: handled)
    await other.send(request(QUICK))
    await other.receive()
    assert len(handled) < count
    assert [(await hostile.receive()).opaque for _ in range(count)] == list(range(count))
    await hostile.send(request(QUICK, count))
    assert (await hostile.receive()).opaque == count


async def test_one_way_requests_behind_the_budget_are_handled(loopback: Loopback) -> None:
    handled: list[int] = []

    def dispatch(connection: Connection, command: RemotingCommand) -> None:
        handled.append(command.opaque)
        compute(Limits().iteration_budget_s * 1000)

    server = await loopback.server(dispatch)
    peer = await loopback.peer(server)
    await peer.send(*(request(SLOW, opaque, flag=2) for opaque in range(10)))
    await until(lambda: len(handled) == 10)
    assert handled == list(range(10))

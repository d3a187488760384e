"""Waits of a SYNC_MASTER: order, number of slaves, deadlines."""

from collections.abc import Callable

from core_broker.ha.waiting_sends import WaitingSends
from core_broker.remoting.codes import ResponseCode


class Outcomes(list[tuple[str, ResponseCode]]):
    """The ended waits, in order."""

    def of(self, name: str) -> Callable[[ResponseCode], None]:
        return lambda code: self.append((name, code))


def test_a_wait_ends_with_its_last_byte_and_not_before() -> None:
    waits, ended = WaitingSends(), Outcomes()
    waits.add(100, 1, 9_000, ended.of("first"))
    waits.add(200, 1, 9_000, ended.of("second"))
    waits.settle([99])
    assert not ended
    waits.settle([199])
    assert ended == [("first", ResponseCode.SUCCESS)]
    waits.settle([200])
    assert ended[1:] == [("second", ResponseCode.SUCCESS)]
    assert not waits


def test_each_slave_counts_once() -> None:
    waits, ended = WaitingSends(), Outcomes()
    waits.add(100, 2, 9_000, ended.of("two"))
    waits.settle([10**9])
    waits.settle([10**9, 99])
    assert not ended
    waits.settle([101, 100])
    assert ended == [("two", ResponseCode.SUCCESS)]


def test_the_deadline_ends_a_wait() -> None:
    waits, ended = WaitingSends(), Outcomes()
    waits.add(100, 1, 1_000, ended.of("first"))
    waits.add(200, 1, 1_500, ended.of("second"))
    waits.expire(999)
    assert not ended
    waits.expire(1_000)
    assert ended == [("first", ResponseCode.FLUSH_SLAVE_TIMEOUT)]
    waits.settle([200])
    assert ended[1:] == [("second", ResponseCode.SUCCESS)]
    waits.expire(10_000)
    assert len(ended) == 2

"""The first message stored at a time, for every approximate answer of a broker."""

from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from console.gateway.engine.own_reads import OwnReads
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.messages.paging import Window
from console.gateway.messages.queue_slices import QueueRef
from console.gateway.messages.windows import first_stored_at
from core_broker.client import PullResult, PullStatus
from tests.support.stored_messages import stored

QUEUE = QueueRef("T", BrokerRef("broker-a", 0, "127.0.0.1:10911"), 0, readable=True)
BEGIN = 3


class Queue:
    """The admin client of a cluster with a single queue and a broker with approximate answers."""

    def __init__(self, times: list[int], answer: int) -> None:
        self.messages = [stored(0, BEGIN + at, ms) for at, ms in enumerate(times)]
        self.answer = answer
        self.own_reads = OwnReads()
        self.pulls = 0

    @property
    def admin(self) -> "Queue":
        return self

    async def search_offset(self, *_: object) -> int:
        return self.answer

    async def pull(
        self, _addr: str, _topic: str, _queue_id: int, offset: int, count: int
    ) -> PullResult:
        self.pulls += 1
        found = [each for each in self.messages if offset <= each.queue_offset < offset + count]
        status = PullStatus.FOUND if found else PullStatus.NO_NEW_MSG
        return PullResult(status, found, offset + count, BEGIN, BEGIN + len(self.messages), 0)


TIMES = st.lists(st.integers(0, 30), max_size=40).map(sorted)


@given(times=TIMES, moment=st.integers(-1, 31), answer=st.integers(-5, 60))
async def test_the_place_is_exact(times: list[int], moment: int, answer: int) -> None:
    queue = Queue(times, answer)
    window = Window(QUEUE, BEGIN, BEGIN + len(times))
    found = await first_stored_at(cast("ClusterSession", queue), window, moment)
    assert found == BEGIN + sum(ms < moment for ms in times)


async def test_a_broker_that_is_near_is_asked_for_one_look_only() -> None:
    times = list(range(0, 1000, 10))
    for answer in (BEGIN + 49, BEGIN + 50):  # the nearest one before, and the first one after
        queue = Queue(times, answer)
        window = Window(QUEUE, BEGIN, BEGIN + len(times))
        assert await first_stored_at(cast("ClusterSession", queue), window, 495) == BEGIN + 50
        assert queue.pulls == 1

"""Orderly delivery: one task per queue; the task waits for the lock and retries failed messages."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from core_broker.client import ConsumeOrderlyStatus, ConsumerSettings, SuspendQueue
from core_broker.client.consumer import orderly_delivery as module
from core_broker.client.consumer.listening import OrderlyListener
from core_broker.client.consumer.orderly_delivery import OrderlyDelivery
from core_broker.client.consumer.process_queue import ProcessQueue
from core_broker.client.consumer.stats import ConsumerStats
from core_broker.client.hooks import HookChain
from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import MessageQueue
from tests.support.consumer_parts import QUEUE, OffsetsInMemory, RecordingSendBack, message
from tests.support.eventually import eventually

SUCCESS = ConsumeOrderlyStatus.SUCCESS
SUSPEND = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT


class Rig:
    """An orderly delivery with one queue; the test controls the queue's lock."""

    def __init__(self, listener: OrderlyListener, settings: ConsumerSettings) -> None:
        self.offsets = OffsetsInMemory()
        self.dead_letters = RecordingSendBack()
        self.locked = True
        stats: dict[str, ConsumerStats] = defaultdict(ConsumerStats)
        self.process_queue = ProcessQueue(QUEUE, 0)
        self.delivery = OrderlyDelivery(
            "G",
            listener,
            settings,
            offsets=self.offsets,
            to_dead_letters=self.dead_letters.send_back,
            hooks=HookChain(()),
            stats=stats.__getitem__,
            holds=lambda _: self.locked,
        )

    async def deliver(self, *offsets: int, to: ProcessQueue | None = None) -> None:
        queue = to or self.process_queue
        fresh = queue.put([message(offset) for offset in offsets], offsets[-1] + 1)
        await self.delivery.submit(queue, fresh)

    @property
    def committed(self) -> int | None:
        return self.offsets.cached(QUEUE)


Start = Callable[..., Awaitable[Rig]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    rigs: list[Rig] = []

    async def begin(listener: OrderlyListener, **settings: object) -> Rig:
        settings = {"suspend_current_queue_ms": 10, **settings}
        rigs.append(Rig(listener, ConsumerSettings(**settings)))
        return rigs[-1]

    yield begin
    for rig in rigs:
        await rig.delivery.stop()


class Listens:
    """Records offsets, and fails a given number of times."""

    def __init__(self, **failures: int) -> None:
        self.consumed_offsets: list[int] = []
        self.failures = {int(offset.removeprefix("o")): n for offset, n in failures.items()}

    async def __call__(self, messages: list[MessageExt]) -> ConsumeOrderlyStatus:
        offset = messages[0].queue_offset
        self.consumed_offsets += [each.queue_offset for each in messages]
        self.failures[offset] = self.failures.get(offset, 0) - 1
        return SUSPEND if self.failures[offset] >= 0 else SUCCESS


async def test_messages_come_one_after_the_other(start: Start) -> None:
    running = 0

    async def listen(messages: list[MessageExt]) -> ConsumeOrderlyStatus:
        nonlocal running
        running += 1
        assert running == 1
        await asyncio.sleep(0)
        consumed_offsets.append(messages[0].queue_offset)
        running -= 1
        return SUCCESS

    consumed_offsets: list[int] = []
    rig = await start(listen)
    await rig.deliver(5, 6, 7)
    await rig.deliver(8, 9)
    await eventually(lambda: rig.committed == 10)
    await rig.deliver(10)
    await eventually(lambda: rig.committed == 11)
    assert consumed_offsets == [5, 6, 7, 8, 9, 10]


async def test_what_fails_comes_again_before_all_that_follows(start: Start) -> None:
    listens = Listens(o6=2)
    rig = await start(listens)
    await rig.deliver(5, 6, 7)
    await eventually(lambda: rig.committed == 8)
    assert listens.consumed_offsets == [5, 6, 6, 6, 7]
    assert rig.dead_letters.offsets == []


@pytest.mark.parametrize("answer", [None, SUSPEND, SuspendQueue(1), "rubbish", []])
async def test_no_answer_and_strange_ones_suspend(start: Start, answer: object) -> None:
    tries: list[int] = []

    async def listen(messages: list[MessageExt]) -> object:
        tries.append(messages[0].reconsume_times)
        return answer if len(tries) < 3 else SUCCESS

    rig = await start(listen)
    await rig.deliver(5)
    await eventually(lambda: rig.committed == 6)
    assert tries == [0, 1, 2]


async def test_after_the_last_try_it_is_a_dead_letter(start: Start) -> None:
    listens = Listens(o5=99)
    rig = await start(listens, max_reconsume_times=2)
    await rig.deliver(5, 6)
    await eventually(lambda: rig.committed == 7)
    assert listens.consumed_offsets == [5, 5, 5, 6]
    assert rig.dead_letters.offsets == [5]


async def test_while_no_broker_stores_the_dead_letter_the_queue_waits(start: Start) -> None:
    listens = Listens(o5=99)
    rig = await start(listens, max_reconsume_times=0)
    rig.dead_letters.is_stored = False
    await rig.deliver(5, 6)
    await eventually(lambda: len(rig.dead_letters.offsets) == 3)
    assert rig.committed == 5
    assert set(listens.consumed_offsets) == {5}


async def test_nothing_is_consumed_without_the_lock(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "UNLOCKED_PAUSE_S", 0.001)
    lock_checks = 0

    def holds(_queue: MessageQueue) -> bool:
        nonlocal lock_checks
        lock_checks += 1
        return rig.locked

    listens = Listens()
    rig = await start(listens)
    rig.delivery._holds = holds
    rig.locked = False
    await rig.deliver(5)
    await eventually(lambda: lock_checks > 5)
    assert listens.consumed_offsets == []
    rig.locked = True
    await eventually(lambda: rig.committed == 6)


async def test_a_queue_is_released_only_after_the_running_call(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RELEASE_WAIT_S", 0.01)
    begun, gate = asyncio.Event(), asyncio.Event()

    async def listen(_messages: list[MessageExt]) -> ConsumeOrderlyStatus:
        begun.set()
        await gate.wait()
        return SUCCESS

    rig = await start(listen)
    await rig.deliver(5, 6)
    await begun.wait()
    rig.process_queue.dropped = True
    assert not await rig.delivery.release(rig.process_queue)
    gate.set()
    assert await rig.delivery.release(rig.process_queue)
    assert rig.committed is None


async def test_a_paused_queue_is_released_at_once(start: Start) -> None:
    rig = await start(Listens(o5=99), suspend_current_queue_ms=30_000)
    await rig.deliver(5)
    await eventually(lambda: rig.committed == 5)
    rig.process_queue.dropped = True
    async with asyncio.timeout(60):
        assert await rig.delivery.release(rig.process_queue)


async def test_queues_go_on_beside_each_other_within_the_limit(start: Start) -> None:
    running = most = 0

    async def listen(_messages: list[MessageExt]) -> ConsumeOrderlyStatus:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return SUCCESS

    rig = await start(listen, concurrency=2)
    queues = [ProcessQueue(MessageQueue("T", "b", number), 0) for number in range(5)]
    for queue in queues:
        await rig.deliver(*range(5), to=queue)
    await eventually(lambda: not any(queue.count for queue in queues))
    assert most == 2


async def test_stopping_lets_the_running_call_end_and_begins_no_more(start: Start) -> None:
    begun, gate = asyncio.Event(), asyncio.Event()
    consumed_offsets: list[int] = []

    async def listen(messages: list[MessageExt]) -> ConsumeOrderlyStatus:
        begun.set()
        await gate.wait()
        consumed_offsets.append(messages[0].queue_offset)
        return SUCCESS

    rig = await start(listen)
    await rig.deliver(5, 6)
    await begun.wait()
    stopping = asyncio.create_task(rig.delivery.stop())
    await asyncio.sleep(0)
    gate.set()
    await stopping
    assert consumed_offsets == [5]
    assert rig.committed == 6

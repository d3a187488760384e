"""Concurrent delivery: offsets, retries and broadcasts, by the listener's status."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from core_broker.client import ConsumeContext, ConsumerSettings, ConsumeStatus
from core_broker.client.consumer import delivery as delivery_module
from core_broker.client.consumer.delivery import Delivery
from core_broker.client.consumer.listening import Listener, ReturnType, for_listener
from core_broker.client.consumer.process_queue import ProcessQueue
from core_broker.client.consumer.stats import ConsumerStats
from core_broker.client.hooks import ClientHook, HookChain
from core_broker.client.identity import now_ms
from core_broker.message.compression import compress
from core_broker.message.model import MessageExt
from core_broker.message.record import decode_record
from core_broker.remoting.bodies import MessageModel
from tests.support.consumer_parts import QUEUE, OffsetsInMemory, RecordingSendBack, message, record
from tests.support.eventually import eventually

SUCCESS, LATER = ConsumeStatus.CONSUME_SUCCESS, ConsumeStatus.RECONSUME_LATER


class Rig:
    """A delivery with one queue."""

    def __init__(
        self, listener: Listener, settings: ConsumerSettings, hooks: list[ClientHook]
    ) -> None:
        self.offsets = OffsetsInMemory()
        self.send_back = RecordingSendBack()
        self.stats: dict[str, ConsumerStats] = defaultdict(ConsumerStats)
        self.process_queue = ProcessQueue(QUEUE, 0)
        self.delivery = Delivery(
            "G",
            listener,
            settings,
            offsets=self.offsets,
            send_back=self.send_back.send_back,
            hooks=HookChain(hooks),
            stats=self.stats.__getitem__,
        )

    async def deliver(self, *offsets: int) -> None:
        fresh = self.process_queue.put([message(offset) for offset in offsets], offsets[-1] + 1)
        await self.delivery.submit(self.process_queue, fresh)

    @property
    def committed(self) -> int | None:
        return self.offsets.cached(QUEUE)


Start = Callable[..., Awaitable[Rig]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    rigs: list[Rig] = []

    async def begin(
        listener: Listener, hooks: tuple[ClientHook, ...] = (), **settings: object
    ) -> Rig:
        rig = Rig(listener, ConsumerSettings(**settings), list(hooks))
        rigs.append(rig)
        rig.delivery.start()
        return rig

    yield begin
    for rig in rigs:
        await rig.delivery.stop()


async def succeed(_messages: list[MessageExt]) -> ConsumeStatus:
    return SUCCESS


async def test_success_moves_the_offset(start: Start) -> None:
    rig = await start(succeed)
    await rig.deliver(5, 6, 7)
    await eventually(lambda: rig.committed == 8)
    assert rig.send_back.offsets == []
    assert rig.stats["T"].status(now_ms()).consume_ok_tps == 3 / 60


async def test_the_offset_waits_for_the_slowest(start: Start) -> None:
    gate = asyncio.Event()

    async def listener(messages: list[MessageExt]) -> ConsumeStatus:
        if messages[0].queue_offset == 5:
            await gate.wait()
        return SUCCESS

    rig = await start(listener)
    await rig.deliver(5, 6, 7)
    await eventually(lambda: rig.process_queue.count == 1)
    assert rig.committed == 5
    gate.set()
    await eventually(lambda: rig.committed == 8)


async def raising(_messages: list[MessageExt]) -> ConsumeStatus:
    raise RuntimeError("cannot")


async def refusing(_messages: list[MessageExt]) -> ConsumeStatus:
    return LATER


async def answering_nothing(_messages: list[MessageExt]) -> None:
    return None


async def never_ending(_messages: list[MessageExt]) -> ConsumeStatus:
    await asyncio.Event().wait()
    return SUCCESS


FAILURES = [
    (raising, ReturnType.EXCEPTION),
    (refusing, ReturnType.FAILED),
    (answering_nothing, ReturnType.RETURN_NULL),
    (never_ending, ReturnType.TIME_OUT),
]


@pytest.mark.parametrize(("listener", "return_type"), FAILURES)
async def test_every_failure_is_given_back_and_passed(
    start: Start, listener: Listener, return_type: ReturnType
) -> None:
    hook = RecordingHook()
    timeout_ms = 20 if return_type is ReturnType.TIME_OUT else 60_000
    rig = await start(listener, hooks=(hook,), consume_timeout_ms=timeout_ms)
    await rig.deliver(5)
    await eventually(lambda: rig.committed == 6)
    assert rig.send_back.offsets == [5]
    assert [context.return_type for context in hook.after] == [return_type]
    assert not hook.after[0].success


async def test_a_message_not_sent_back_is_retried_in_the_client(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_module, "LOCAL_RETRY_DELAY_S", 0.01)
    tries: list[int] = []

    async def listener(messages: list[MessageExt]) -> ConsumeStatus:
        tries.append(messages[0].reconsume_times)
        return SUCCESS if len(tries) == 3 else LATER

    rig = await start(listener)
    rig.send_back.is_stored = False
    await rig.deliver(5)
    await eventually(lambda: rig.committed == 6)
    assert tries == [0, 1, 2]


async def test_while_a_message_waits_here_the_offset_stays(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_module, "LOCAL_RETRY_DELAY_S", 60)

    async def listener(messages: list[MessageExt]) -> ConsumeStatus:
        return LATER if messages[0].queue_offset == 5 else SUCCESS

    rig = await start(listener)
    rig.send_back.is_stored = False
    await rig.deliver(5, 6, 7)
    await eventually(lambda: rig.process_queue.count == 1)
    assert rig.committed == 5


async def test_broadcast_messages_are_not_given_back(start: Start) -> None:
    rig = await start(raising, model=MessageModel.BROADCASTING)
    await rig.deliver(5)
    await eventually(lambda: rig.committed == 6)
    assert rig.send_back.offsets == []


async def test_the_result_for_a_queue_that_moved_on_does_not_count(start: Start) -> None:
    gate, begun = asyncio.Event(), asyncio.Event()

    async def listener(_messages: list[MessageExt]) -> ConsumeStatus:
        begun.set()
        await gate.wait()
        return LATER

    rig = await start(listener)
    await rig.deliver(5)
    await begun.wait()
    rig.process_queue.dropped = True
    gate.set()
    await rig.delivery.stop()
    assert rig.committed is None
    assert rig.send_back.offsets == []


async def test_batches_and_concurrency_are_bounded(start: Start) -> None:
    sizes: list[int] = []
    running = 0
    running_max = 0

    async def listener(messages: list[MessageExt]) -> ConsumeStatus:
        nonlocal running, running_max
        running += 1
        running_max = max(running_max, running)
        sizes.append(len(messages))
        await asyncio.sleep(0)
        running -= 1
        return SUCCESS

    rig = await start(listener, batch_max=4, concurrency=2)
    await rig.deliver(*range(18))
    await eventually(lambda: rig.committed == 18)
    assert sorted(sizes) == [2, 4, 4, 4, 4]
    assert running_max == 2


async def test_stopping_lets_running_calls_end_and_begins_no_more(start: Start) -> None:
    gate, begun = asyncio.Event(), asyncio.Event()
    consumed: list[int] = []

    async def listener(messages: list[MessageExt]) -> ConsumeStatus:
        begun.set()
        await gate.wait()
        consumed.append(messages[0].queue_offset)
        return SUCCESS

    rig = await start(listener, concurrency=1)
    await rig.deliver(5, 6)
    await begun.wait()
    stopping = asyncio.create_task(rig.delivery.stop())
    await asyncio.sleep(0)
    gate.set()
    await stopping
    assert consumed == [5]
    assert rig.committed == 6


async def test_stopping_does_not_wait_for_ever(start: Start) -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def listener(_messages: list[MessageExt]) -> ConsumeStatus:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return SUCCESS

    rig = await start(listener, drain_timeout_s=0.02)
    await rig.deliver(5)
    await begun.wait()
    await rig.delivery.stop()
    assert cancelled.is_set()
    assert rig.committed is None


class RecordingHook:
    """A hook recording listener calls."""

    def __init__(self) -> None:
        self.before: list[str] = []
        self.after: list[ConsumeContext] = []

    async def start(self, namesrv_addr: str, group: str, role: str) -> None: ...
    async def stop(self) -> None: ...
    def before_send(self, context: object) -> None: ...
    def after_send(self, context: object) -> None: ...

    def before_consume(self, context: ConsumeContext) -> None:
        self.before.append(context.call_id)

    def end_transaction(self, context: object) -> None: ...
    def after_consume(self, context: ConsumeContext) -> None:
        self.after.append(context)


async def test_hooks_see_each_call_under_an_id_of_its_own(start: Start) -> None:
    hook = RecordingHook()
    rig = await start(succeed, hooks=(hook,))
    await rig.deliver(5, 6)
    await eventually(lambda: rig.committed == 7)
    assert len(set(hook.before)) == 2
    assert [context.call_id for context in hook.after] == hook.before
    assert all(context.success and context.group == "G" for context in hook.after)


def test_a_listener_sees_the_topic_and_body_that_were_sent() -> None:
    stored = decode_record(
        record(
            5,
            compress(b"x" * 5000),
            topic="%RETRY%G",
            sys_flag=0x301,
            properties={"RETRY_TOPIC": "T"},
        )
    )
    restored = for_listener(stored, "G")
    assert (restored.topic, restored.body, restored.sys_flag) == ("T", b"x" * 5000, 0)
    assert restored.decompressed_body() == b"x" * 5000


def test_a_body_that_does_not_unpack_stays_packed() -> None:
    restored = for_listener(decode_record(record(5, b"no zlib", sys_flag=0x1)), "G")
    assert (restored.body, restored.sys_flag) == (b"no zlib", 1)

"""Stopping a trace hook during the send of a batch loses no record."""

import asyncio
from typing import Any, cast

from core_broker.client import Producer
from core_broker.message.model import Message
from trace.codec import Pub, decode_trace
from trace.hooks import CALLS_PER_BATCH, TraceHook

CALLS = CALLS_PER_BATCH + 5


class SlowProducer:
    """Accepts a message only when the test allows it."""

    def __init__(self) -> None:
        self.under_way = asyncio.Event()
        self.let = asyncio.Event()
        self.taken: list[Message] = []

    async def send(self, message: Message) -> None:
        self.under_way.set()
        await self.let.wait()
        self.taken.append(message)

    async def stop(self) -> None:
        pass


def sent(number: int) -> Pub:
    return Pub(
        timestamp_ms=number,
        region_id="",
        group="g",
        topic="t",
        msg_id=str(number),
        tags="",
        keys="",
        store_host="",
        body_bytes=1,
        cost_ms=1,
        msg_type=0,
        offset_msg_id="",
        success=True,
    )


async def test_stop_waits_for_the_current_batch() -> None:
    hook, producer = TraceHook(), SlowProducer()
    hook._producer = cast("Producer", cast("Any", producer))
    hook._flushes.start()
    for number in range(CALLS):
        hook._put([sent(number)])
    async with asyncio.timeout(60):
        await producer.under_way.wait()
        stopping = asyncio.create_task(hook.stop())
        await asyncio.sleep(0)
        producer.let.set()
        await stopping
    records = [each for message in producer.taken for each in decode_trace(message.body).records]
    assert sorted(int(each.msg_id) for each in records) == list(range(CALLS))
    assert hook.dropped == 0

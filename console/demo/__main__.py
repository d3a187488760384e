"""`python -m console.demo HOST:PORT [FILE]`: runs the shop on a cluster until SIGINT or SIGTERM.

FILE has the keys that sign requests, as RocketMQ's conf/tools.yml."""

import asyncio
import logging
import random
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from console.demo import shop
from core_broker.client import (
    AclRpcHook,
    AdminClient,
    ConsumerSettings,
    ConsumeStatus,
    Credentials,
    Producer,
    PushConsumer,
)
from core_broker.errors import GantryError
from core_broker.message.model import MessageExt
from trace.hooks import TraceHook

log = logging.getLogger("demo")

REPORT_EVERY_S = 60.0
PRODUCER_GROUP = "shop"


async def run(namesrv_addr: str, rpc_hooks: Sequence[AclRpcHook]) -> None:
    await declare(namesrv_addr, rpc_hooks)
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with AsyncExitStack() as running:
        for subscriber in shop.SUBSCRIBERS:
            await running.enter_async_context(consumer(subscriber, namesrv_addr, rpc_hooks))
        hooks = [TraceHook(rpc_hooks=rpc_hooks)]
        producer = Producer(PRODUCER_GROUP, namesrv_addr, hooks, rpc_hooks=rpc_hooks)
        await running.enter_async_context(producer)
        sys.stdout.write("demo: running\n")
        sys.stdout.flush()
        await send_until(stopping, producer)


async def declare(namesrv_addr: str, rpc_hooks: Sequence[AclRpcHook]) -> None:
    """Create the topics and groups on every broker, so that pages show them from the start."""
    async with AdminClient(namesrv_addr, rpc_hooks=rpc_hooks) as admin:
        cluster = await admin.cluster_info()
        for broker in cluster.broker_addr_table.values():
            # A master: slaves refuse changes, and copy topics and groups.
            for addr in [broker.broker_addrs[0]] if 0 in broker.broker_addrs else []:
                for topic in shop.topics():
                    await admin.create_topic(addr, topic)
                for group in shop.groups():
                    await admin.create_group(addr, group)


def consumer(
    subscriber: shop.Subscriber, namesrv_addr: str, rpc_hooks: Sequence[AclRpcHook]
) -> PushConsumer:
    # A consumer sends the retry limit with each failed message; the broker applies the limit.
    settings = ConsumerSettings(max_reconsume_times=subscriber.retries_max)
    consumer = PushConsumer(
        subscriber.group,
        namesrv_addr,
        [TraceHook(rpc_hooks=rpc_hooks)],
        settings=settings,
        rpc_hooks=rpc_hooks,
    )
    for topic, expression in subscriber.subscriptions.items():
        consumer.subscribe(topic, expression)

    async def work(messages: list[MessageExt]) -> ConsumeStatus:
        await asyncio.sleep(random.uniform(*subscriber.work_s))
        for message in messages:
            if subscriber is shop.ACCOUNTING:
                # The console shows the exception as cause of the dead letter.
                shop.book(message.decompressed_body(), now_ms())
        return ConsumeStatus.CONSUME_SUCCESS

    consumer.listener(work)
    return consumer


async def send_until(stopping: asyncio.Event, producer: Producer) -> None:
    """Send the shop's messages at MESSAGES_PER_SECOND; continue after failed sends."""
    sent = failed = 0
    reported = time.monotonic()
    for message in shop.messages(random.Random(), now_ms):
        try:
            await producer.send(message)
            sent += 1
        except GantryError as problem:
            failed += 1
            log.warning("not sent: %s", problem)
        if time.monotonic() - reported > REPORT_EVERY_S:
            log.info("%d messages sent, %d not", sent, failed)
            reported = time.monotonic()
        pause_s = random.expovariate(shop.MESSAGES_PER_SECOND)
        try:
            await asyncio.wait_for(stopping.wait(), pause_s)
        except TimeoutError:
            continue
        return


def mark_intended(record: logging.LogRecord) -> bool:
    """Logging filter: describe the shop's rejected payments as intended, without traceback."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, shop.LostCardError):
        record.levelno, record.levelname = logging.INFO, logging.getLevelName(logging.INFO)
        record.msg = "Intended failure of the demo, for the page Dead letters: %s"
        record.args = (error,)
        record.exc_info = record.exc_text = None
    return True


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def main() -> int:
    if len(sys.argv) not in (2, 3):
        sys.stderr.write("usage: python -m console.demo HOST:PORT of the name server [FILE]\n")
        return 2
    credentials = Credentials.from_file(Path(sys.argv[2])) if len(sys.argv) == 3 else None
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(mark_intended)
    asyncio.run(run(sys.argv[1], [credentials.hook()] if credentials else []))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""An orderly consumer across the deaths of masters: each queue in order, no message left out.

Producers send numbered batches to each queue, the next one after the acknowledgement of the last
one, and send a batch again whose outcome is unknown. An orderly consumer reads them, while the
elected master is killed again and again. A message that was consumed never changes. The consumer
goes forward by one message at a time; it goes back only after a kill, because consumer offsets are
copied each ten seconds. A message is stored twice only where its batch was sent twice.
`ORDERED_MESSAGES` sets how many messages, `ORDERED_FAILOVERS` how many kills, `FIRST_SEED` where
the random moments begin; with a file in `ORDERED_FIGURES` the figures are written there.
"""

import asyncio
import json
import os
import random
import time
from collections import defaultdict
from functools import partial
from itertools import groupby
from pathlib import Path

import pytest

from core_broker.client import (
    AdminClient,
    ConsumeFromWhere,
    ConsumeOrderlyStatus,
    ConsumerSettings,
    Message,
    MessageExt,
    MessageQueue,
    Producer,
    ProducerSettings,
    PushConsumer,
)
from core_broker.errors import GantryError
from core_broker.remoting.bodies import TopicConfig
from tests.support.eventually import eventually
from tests.support.replica_set import BROKER_NAME, ReplicaSet

pytestmark = pytest.mark.crash

MESSAGES = int(os.environ.get("ORDERED_MESSAGES", "6000"))
FAILOVERS = int(os.environ.get("ORDERED_FAILOVERS", "2"))
FIRST_SEED = int(os.environ.get("FIRST_SEED", "0"))
FIGURES = os.environ.get("ORDERED_FIGURES", "")
QUEUES = 8
BATCH = 25
BATCHES = MESSAGES // QUEUES // BATCH
#: Bound of every wait, seconds.
WAIT_S = 180.0
#: Bound of the consumption, seconds.
CONSUME_S = 300 + MESSAGES / 200
#: Pause after a failed send, seconds.
PAUSE_S = 0.05
SEND_TIMEOUT_MS = 10_000
TOPIC, GROUP = "Ordered", "ordered-group"
#: Times that a queue may go back for each kill: the consumer loses the queue with the master, and
#: may lose it again with a route that does not name the next master yet.
BACK_PER_KILL = 3


class Pace:
    """Lets the senders go on part by part, so that there is a load at each kill."""

    def __init__(self) -> None:
        self._parts = 0
        self._next = asyncio.Event()

    def next_part(self) -> None:
        """Allow one more part of the batches; there is one more part than kills."""
        self._parts += 1
        self._next.set()
        self._next = asyncio.Event()

    async def allowed(self, batch: int) -> None:
        """Wait until a batch may be sent."""
        while batch * (FAILOVERS + 1) >= self._parts * BATCHES:
            await self._next.wait()


class Sender:
    """Sends the batches of one queue."""

    def __init__(self, producer: Producer, queue_id: int, pace: Pace) -> None:
        #: Batch → number of sends.
        self.sends: dict[int, int] = defaultdict(int)
        self._producer = producer
        self._pace = pace
        self._queue = MessageQueue(TOPIC, BROKER_NAME, queue_id)

    async def run(self) -> None:
        """Send until every batch is acknowledged."""
        for batch in range(BATCHES):
            await self._pace.allowed(batch)
            while not await self._send(batch):
                await asyncio.sleep(PAUSE_S)

    async def _send(self, batch: int) -> bool:
        self.sends[batch] += 1
        messages = [
            Message(TOPIC, b"%d %d" % (batch, number) + b"x" * 80) for number in range(BATCH)
        ]
        try:
            found = await self._producer.send_batch_to(
                messages, self._queue, timeout_ms=SEND_TIMEOUT_MS
            )
        except GantryError:
            return False
        return found.status == "SEND_OK"


class Reader:
    """What the orderly consumer saw."""

    def __init__(self) -> None:
        self.consumed = 0
        self.repeated = 0
        #: Queue → numbers of messages by their offset.
        self.found: dict[int, list[tuple[int, int]]] = defaultdict(list)
        #: Queue → how often the consumer went back.
        self.backwards: dict[int, int] = defaultdict(int)
        self.problems: list[str] = []
        self._next: dict[int, int] = {}

    async def consume(self, messages: list[MessageExt]) -> ConsumeOrderlyStatus:
        """Note messages of one queue."""
        for message in messages:
            self._note(message.queue_id, message.queue_offset, message.body)
        return ConsumeOrderlyStatus.SUCCESS

    def _note(self, queue: int, offset: int, body: bytes) -> None:
        batch, number = body.rstrip(b"x").split()
        content = int(batch), int(number)
        known, expected = self.found[queue], self._next.get(queue, 0)
        if offset > expected:
            self.problems.append(f"queue {queue}: {offset} after {expected - 1}")
        elif offset < expected:
            self.backwards[queue] += 1
        if offset < len(known):
            self.repeated += 1
            if known[offset] != content:
                self.problems.append(
                    f"queue {queue}: {content} at {offset}, where {known[offset]} was consumed"
                )
        else:
            known.append(content)
            self.consumed += 1
        self._next[queue] = offset + 1

    def check(self, senders: list[Sender]) -> int:
        """Compare with the senders; return the number of messages that were stored twice."""
        assert not self.problems, self.problems[:20]
        stored_twice = 0
        for queue, sender in enumerate(senders):
            copies: dict[int, int] = defaultdict(int)
            last = -1
            for batch, members in groupby(self.found[queue], key=lambda each: each[0]):
                numbers = [number for _, number in members]
                assert batch == last + 1, f"queue {queue}: batch {batch} follows {last}"
                assert numbers == [*range(BATCH)] * (len(numbers) // BATCH)
                copies[batch], last = len(numbers) // BATCH, batch
            assert last == BATCHES - 1, f"queue {queue} ends with batch {last}"
            for batch, count in copies.items():
                assert count <= sender.sends[batch], f"queue {queue}: batch {batch} {count} times"
                stored_twice += (count - 1) * BATCH
        for queue, times in self.backwards.items():
            assert times <= BACK_PER_KILL * FAILOVERS, f"queue {queue} went back {times} times"
        return stored_twice

    def is_whole(self) -> bool:
        """Whether every queue was read to its last batch."""
        return all(self.found[queue][-1:] == [(BATCHES - 1, BATCH - 1)] for queue in range(QUEUES))


async def create_topic(replicas: ReplicaSet) -> None:
    """Create the topic, and wait until every slave has it: slaves copy topics each 10 s."""
    master = await replicas.whole(WAIT_S)
    config = TopicConfig(topic_name=TOPIC, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
    async with AdminClient(replicas.namesrv_addr) as admin:
        await admin.create_topic(master.addr, config)

        async def is_everywhere() -> bool:
            tables = [await admin.topic_configs(each.addr) for each in replicas.replicas]
            return all(TOPIC in each for each in tables)

        await eventually(is_everywhere, WAIT_S)


async def kill_masters(
    replicas: ReplicaSet, reader: Reader, pace: Pace, dice: random.Random
) -> None:
    """Kill the master in the middle of each part of the messages but the last one."""
    part = BATCHES * BATCH * QUEUES / (FAILOVERS + 1)
    pace.next_part()
    for number in range(FAILOVERS):
        await eventually(partial(_has_consumed, reader, (number + dice.random()) * part), CONSUME_S)
        master = await replicas.whole(WAIT_S)
        pace.next_part()
        await asyncio.to_thread(master.kill)
        await eventually(partial(_has_consumed, reader, (number + 1) * part + 1), CONSUME_S)
        await asyncio.to_thread(master.start)


def _has_consumed(reader: Reader, count: float) -> bool:
    return reader.consumed >= count


@pytest.mark.timeout(2 * CONSUME_S + 120 * FAILOVERS)
async def test_an_orderly_consumer_misses_nothing(tmp_path: Path) -> None:
    dice, reader = random.Random(FIRST_SEED), Reader()
    with ReplicaSet(
        tmp_path,
        min_in_sync_replicas=2,
        controller_heart_beat_timeout_mills=5_000,
        mapped_file_size_commit_log=16 * 1024 * 1024,
    ) as replicas:
        for replica in replicas.replicas:
            await asyncio.to_thread(replica.start)
        await create_topic(replicas)
        began = time.monotonic()
        settings = ConsumerSettings(
            consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            batch_max=32,
            rebalance_interval_s=1,
            suspend_current_queue_ms=10,
        )
        consumer = PushConsumer(GROUP, replicas.namesrv_addr, settings=settings)
        consumer.subscribe(TOPIC)
        consumer.orderly_listener(reader.consume)
        producer = Producer(
            "ordered", replicas.namesrv_addr, settings=ProducerSettings(retry_times=0)
        )
        async with producer, consumer:
            pace = Pace()
            senders = [Sender(producer, queue_id, pace) for queue_id in range(QUEUES)]
            work = [asyncio.create_task(each.run()) for each in senders]
            await kill_masters(replicas, reader, pace, dice)
            await asyncio.gather(*work)
            await eventually(reader.is_whole, CONSUME_S)
        took_s = time.monotonic() - began
        stored_twice = reader.check(senders)
        await replicas.whole(WAIT_S)
        for replica in replicas.replicas:
            assert await asyncio.to_thread(replica.program.stop) == 0
    if FIGURES:
        figures = {
            "messages": BATCHES * BATCH * QUEUES,
            "failovers": FAILOVERS,
            "stored_twice": stored_twice,
            "repeated": reader.repeated,
            "went_back": sum(reader.backwards.values()),
            "seconds": round(took_s, 1),
        }
        Path(FIGURES).write_text(json.dumps(figures) + "\n")

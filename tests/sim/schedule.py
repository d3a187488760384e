"""One seeded schedule: puts, flushes, faults, damage, cuts, kills and restarts of a store.

After every restart the store must satisfy the `History`: all acknowledged messages, no unsent
message, no duplicate, no gap in offsets; and a power cut loses only a tail of the log.
"""

import errno
import random
from functools import partial
from pathlib import Path

from core_broker.errors import StoreReadOnly
from core_broker.message.model import MessageExt, MessageInner
from core_broker.message.record import decode_record
from core_broker.message.record_layout import (
    BODY_LENGTH_AT,
    HEAD,
    QUEUE_ID_AT,
    QUEUE_OFFSET_AT,
    SYS_FLAG_AT,
)
from core_broker.store import GetResult, GetStatus, PutResult, PutStatus
from core_broker.store.simulated_files import UNLIMITED, SimulatedFiles
from tests.support.history import Found, History, Queue
from tests.support.stores import (
    NOW_MS,
    SEGMENT_BYTES,
    Bench,
    chance,
    message,
    query,
    warmed,
)

ROOT = Path("/simulated/store")
LIVES = 5
TURNS_PER_LIFE = 40
TOPICS = ("TopicA", "TopicB")
QUEUES = [(topic, queue_id) for topic in TOPICS for queue_id in (0, 1)]
#: Bytes of a record with detectable damage: size, magic, body checksum, queue offset, physical
#: offset. The bytes under the body's checksum are detectable, too.
NOTICED_BYTES = (*range(QUEUE_ID_AT), *range(QUEUE_OFFSET_AT, SYS_FLAG_AT))
BODY_AT = HEAD.size
FAULTS = ("write", "sync", "open", "truncate", "allocate", "sync_dir", "rename", "unlink")


class Schedule:
    """One run, determined by the seed."""

    def __init__(self, seed: int, flush: str) -> None:
        self.random = random.Random(seed)
        self.flush = flush
        self.now_ms = NOW_MS
        self.files = SimulatedFiles(seed, clock_ms=lambda: self.now_ms)
        self.history = History()
        self.bench = self._open()

    def _open(self) -> Bench:
        bench = Bench(ROOT, self.files, flush_disk_type=self.flush, flush_commit_log_least_pages=0)
        bench.now_ms = self.now_ms
        return bench.open()

    def run(self) -> None:
        """Live and die some times, and check after each start."""
        for _ in range(LIVES):
            if chance(self.random, 0.1):
                self.files.capacity = self.files.used + self.random.randrange(8 * SEGMENT_BYTES)
            for _ in range(self.random.randint(1, TURNS_PER_LIFE)):
                self._turn()
            self._end_life()
            if chance(self.random, 0.3):
                self._damage_derived_files()
            if chance(self.random, 0.15):
                self._damage_log()
            self.bench = self._open()
            self._check()

    # -- actions --

    def _turn(self) -> None:
        self.now_ms += self.random.choice((0, 1, 50, 700))
        self.bench.now_ms = self.now_ms
        results = self._put_some()
        try:
            self.bench.store.write_staged()
        except StoreReadOnly:
            results = []
        for number, result in results:
            span = (result.offset_physical, result.offset_end)
            self.history.stored(number, result.offset_logical, span)
            self._wait_for_flush(number, result)
        for executor in self.bench.executors.values():
            while chance(self.random, 0.6) and executor.step():
                pass
        if chance(self.random, 0.3):
            self.bench.store.tick(self.now_ms)
        if chance(self.random, 0.03):
            self._plan_fault()
        if chance(self.random, 0.1):
            self._read_something()
        if chance(self.random, 0.1):
            self.files.capacity = UNLIMITED

    def _put_some(self) -> list[tuple[int, PutResult]]:
        accepted: list[tuple[int, PutResult]] = []
        for _ in range(self.random.choice((0, 1, 1, 2, 5))):
            batch = [self._message() for _ in range(self.random.choice((1, 1, 1, 3)))]
            if len(batch) == 1:
                outcomes = [self.bench.store.put(batch[0][1])]
            else:
                outcomes = self.bench.store.put_batch([inner for _, inner in batch])
            assert len({each.status for each in outcomes}) == 1
            if outcomes[0].status is PutStatus.PUT_OK:
                accepted += zip((number for number, _ in batch), outcomes, strict=True)
        return accepted

    def _message(self) -> tuple[int, MessageInner]:
        number = self.history.next_number()
        topic, queue_id = queue = self.random.choice(QUEUES)
        body = self.random.randbytes(self.random.choice((0, 5, 100, 400, 1500)))
        self.history.begin(number, queue, body)
        return number, message(number, topic=topic, queue_id=queue_id, body=body)

    def _wait_for_flush(self, number: int, result: PutResult) -> None:
        def flushed(is_flushed: bool) -> None:
            if is_flushed:
                self.history.synced(number)

        if self.flush == "SYNC_FLUSH":
            self.bench.store.on_flushed(result.offset_end, flushed)

    def _plan_fault(self) -> None:
        operation = self.random.choice(FAULTS)
        code = self.random.choice((errno.EIO, errno.ENOSPC))
        times = self.random.choice((1, 1, 3))

        def fault(called: str, path: Path) -> None:
            nonlocal times
            if called == operation and times:
                times -= 1
                raise OSError(code, "commanded fault", str(path))

        self.files.fault = fault

    def _read_something(self) -> None:
        topic, queue_id = self.random.choice(QUEUES)
        low, high = self.bench.store.queue_range(topic, queue_id)
        if low < high:
            offset = self.random.randrange(low, high)
            try:
                result = self._get((topic, queue_id), offset)
            except OSError:
                return
            if result.status is GetStatus.FOUND:
                for each in result.records:
                    self._check_content(decode_record(each))

    def _end_life(self) -> None:
        end = self.random.choice(("cut", "cut", "kill", "close"))
        if end == "close":
            self.files.fault = None
            self.files.capacity = UNLIMITED
            self.bench.store.close()
        elif end == "kill":
            self.files.kill()
        else:
            self.files.power_cut()
            self.history.power_cut()
        self.files.fault = None
        self.files.capacity = UNLIMITED

    # -- damage --

    def _damage_derived_files(self) -> None:
        """Remove, shorten or empty files that are derived from the commit log."""
        files = self.files
        queues = ROOT / "consumequeue"
        folder = self.random.choice(
            [ROOT / "index", *(queues / topic / str(queue_id) for topic, queue_id in QUEUES)]
        )
        names = files.names(folder)
        if not names or chance(self.random, 0.3):
            files.remove_tree(folder)
            return
        path = folder / self.random.choice((names[0], names[-1], self.random.choice(names)))
        damage = self.random.choice(("remove", "shorten", "zero"))
        if damage == "remove":
            files.remove(path)
            files.sync_dir(folder)
        else:
            file = files.open(path)
            size = files.size(path)
            file.truncate(size // 2 if damage == "shorten" else 0)
            if damage == "zero" and folder.name != "index":
                file.truncate(size)
            file.sync()

    def _damage_log(self) -> None:
        """Flip a detectable bit of one or two records."""
        for number, (start, end) in self.random.sample(
            sorted(self.history.spans.items()), min(2, len(self.history.spans))
        ):
            body_end = BODY_AT + len(self.history.body(number))
            at = start + self.random.choice((*NOTICED_BYTES, *range(BODY_LENGTH_AT, body_end)))
            path = ROOT / "commitlog" / f"{start - start % SEGMENT_BYTES:020d}"
            if at < end and self.files.exists(path):
                self.files.flip_bit(path, at % SEGMENT_BYTES, self.random.randrange(8))
                self.history.damaged(number)

    # -- checks --

    def _check(self) -> None:
        store = self.bench.store
        found = {queue: self._read(queue) for queue in QUEUES}
        verdict = self.history.check(
            {
                queue: [Found(each.queue_offset, number_of(each), each.body) for each in messages]
                for queue, messages in found.items()
            },
            store.max_offset_physical,
        )
        assert verdict.is_clean, verdict.problems
        for (topic, queue_id), messages in found.items():
            for each in messages:
                self._check_content(each)
                (unit,) = store.queue_units(topic, queue_id, each.queue_offset, 1)
                assert unit.offset_physical == each.offset_physical
            sound = [each for each in messages if not self.history.is_damaged(number_of(each))]
            for each in sound[-1:]:
                hit = query(store, each.properties["UNIQ_KEY"], topic=topic)
                offsets = [decode_record(record).offset_physical for record in hit.records]
                assert each.offset_physical in offsets, f"no key leads to {number_of(each)}"

    def _get(self, queue: Queue, offset: int) -> GetResult:
        store = self.bench.store
        return warmed(store, partial(store.get, *queue, offset, 32))

    def _read(self, queue: Queue) -> list[MessageExt]:
        """Read a whole queue, skipping unreadable offsets."""
        store = self.bench.store
        offset, end = store.queue_range(*queue)
        found: list[MessageExt] = []
        while offset < end:
            result = self._get(queue, offset)
            if result.status is GetStatus.FOUND:
                messages = [decode_record(each) for each in result.records]
                found += [each for each in messages if not self._is_damaged(each)]
            assert result.next_offset > offset, result
            offset = result.next_offset
        return found

    def _is_damaged(self, found: MessageExt) -> bool:
        number = number_of(found)
        return self.history.is_damaged(number) and found.body != self.history.body(number)

    def _check_content(self, found: MessageExt) -> None:
        number = number_of(found)
        if not self.history.is_damaged(number):
            assert found.body == self.history.body(number), f"message {number} is damaged"
            assert found.properties["TAGS"] == f"Tag{number % 3}", f"message {number} is damaged"


def number_of(found: MessageExt) -> int:
    """The number of a message."""
    return int(found.properties["UNIQ_KEY"][-12:], 16)

"""The store on a simulated disk: seeded schedules of puts, flushes, faults, cuts and restarts.

After every restart the store must hold every acknowledged message, nothing that nobody sent,
nothing twice, and offsets without a hole. `SEEDS` sets how many schedules run, `FIRST_SEED` where
they begin; a failure prints the command that repeats it.
"""

import errno
import os
import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from core_broker.errors import StoreReadOnly
from core_broker.message.model import MessageExt, MessageInner
from core_broker.message.record import decode_record
from core_broker.store import GetStatus, PutResult, PutStatus
from core_broker.store.simulated_files import SimulatedFiles
from tests.support.stores import NOW_MS, Bench, chance, message, query, read_queue

FIRST_SEED = int(os.environ.get("FIRST_SEED", "0"))
SEEDS = int(os.environ.get("SEEDS", "40"))
ROOT = Path("/simulated/store")
LIVES = 5
TURNS_PER_LIFE = 40
TOPICS = ("TopicA", "TopicB")
QUEUES = 2

Key = tuple[str, int]


@dataclass
class History:
    """What clients know: what they sent, where it was said to lie, and what was acknowledged."""

    numbers: int = 0
    #: Queue → number of the message → its body, for everything ever sent.
    sent: dict[Key, dict[int, bytes]] = field(default_factory=dict)
    #: Queue → logical offset → number, for what survives a power cut or a kill from now on.
    synced: dict[Key, dict[int, int]] = field(default_factory=dict)
    written: dict[Key, dict[int, int]] = field(default_factory=dict)


class Schedule:
    """One seeded run."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.is_sync = chance(self.random, 0.6)
        self.now_ms = NOW_MS
        self.files = SimulatedFiles(seed, clock_ms=lambda: self.now_ms)
        self.history = History()
        self.bench = self._open()

    def _open(self) -> Bench:
        flush = "SYNC_FLUSH" if self.is_sync else "ASYNC_FLUSH"
        bench = Bench(ROOT, self.files, flush_disk_type=flush, flush_commit_log_least_pages=0)
        bench.now_ms = self.now_ms
        return bench.open()

    def run(self) -> None:
        for _ in range(LIVES):
            for _ in range(self.random.randint(1, TURNS_PER_LIFE)):
                self._turn()
            self._end_life()
            self._check()

    # -- what happens ---------------------------------------------------------------------------

    def _turn(self) -> None:
        self.now_ms += self.random.choice((0, 1, 50, 700))
        self.bench.now_ms = self.now_ms
        results = self._put_some()
        try:
            self.bench.store.write_staged()
        except StoreReadOnly:
            results = []
        for number, key, result in results:
            self._note(self.history.written, key, result.offset_logical, number)
            self._acknowledge_when_flushed(number, key, result)
        for lane in self.bench.lanes.values():
            while chance(self.random, 0.6) and lane.step():
                pass
        if chance(self.random, 0.3):
            self.bench.store.tick(self.now_ms)
        if chance(self.random, 0.03):
            self._plan_fault()
        if chance(self.random, 0.1):
            self._read_something()

    def _put_some(self) -> list[tuple[int, Key, PutResult]]:
        accepted: list[tuple[int, Key, PutResult]] = []
        for _ in range(self.random.choice((0, 1, 1, 2, 5))):
            batch = [self._message() for _ in range(self.random.choice((1, 1, 1, 3)))]
            if len(batch) == 1:
                outcomes = [self.bench.store.put(batch[0][2])]
            else:
                outcomes = self.bench.store.put_batch([inner for _, _, inner in batch])
            assert len({each.status for each in outcomes}) == 1
            for (number, key, _), outcome in zip(batch, outcomes, strict=True):
                if outcome.status is PutStatus.PUT_OK:
                    accepted.append((number, key, outcome))
        return accepted

    def _message(self) -> tuple[int, Key, MessageInner]:
        number = self.history.numbers
        self.history.numbers += 1
        key = (self.random.choice(TOPICS), self.random.randrange(QUEUES))
        body = self.random.randbytes(self.random.choice((0, 5, 100, 400, 1500)))
        self.history.sent.setdefault(key, {})[number] = body
        return number, key, message(number, topic=key[0], queue_id=key[1], body=body)

    def _acknowledge_when_flushed(self, number: int, key: Key, result: PutResult) -> None:
        def flushed(is_flushed: bool) -> None:
            if is_flushed:
                self._note(self.history.synced, key, result.offset_logical, number)

        if self.is_sync:
            self.bench.store.on_flushed(result.offset_end, flushed)

    def _plan_fault(self) -> None:
        operation = self.random.choice(("write", "sync", "open", "truncate", "sync_dir", "rename"))
        code = self.random.choice((errno.EIO, errno.ENOSPC))
        times = self.random.choice((1, 1, 3))

        def fault(called: str, path: Path) -> None:
            nonlocal times
            if called == operation and times:
                times -= 1
                raise OSError(code, "commanded fault", str(path))

        self.files.fault = fault

    def _read_something(self) -> None:
        topic, queue_id = self.random.choice(TOPICS), self.random.randrange(QUEUES)
        low, high = self.bench.store.queue_range(topic, queue_id)
        if low < high:
            try:
                result = self.bench.store.get(topic, queue_id, self.random.randrange(low, high), 32)
            except OSError:
                return
            assert result.status is GetStatus.FOUND
            self._check_messages(
                (topic, queue_id), [decode_record(each) for each in result.records]
            )

    def _end_life(self) -> None:
        end = self.random.choice(("cut", "cut", "kill", "close"))
        if end == "close":
            self.files.fault = None
            self.bench.store.close()
        elif end == "kill":
            self.files.kill()
            self.files.fault = None
        else:
            self.files.power_cut()
            # Whatever was written but not synced may be gone.
            self.history.written = {
                key: dict(synced) for key, synced in self.history.synced.items()
            }

        if chance(self.random, 0.3):
            self._damage_derived_files()

    def _damage_derived_files(self) -> None:
        """Remove, shorten or empty some of the files that can be built from the commit log."""
        files = self.files
        folders = [ROOT / "index"]
        folders += [
            ROOT / "consumequeue" / topic / str(each) for topic in TOPICS for each in (0, 1)
        ]
        folder = self.random.choice(folders)
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

    # -- what must hold -------------------------------------------------------------------------

    def _check(self) -> None:
        self.bench = self._open()
        for topic in TOPICS:
            for queue_id in range(QUEUES):
                key = (topic, queue_id)
                found = read_queue(self.bench.store, topic, queue_id)
                assert [each.queue_offset for each in found] == list(range(len(found))), key
                self._check_messages(key, found)
                numbers = [number_of(each) for each in found]
                assert len(set(numbers)) == len(numbers), f"a message is twice in {key}"
                for offset, number in self.history.written.get(key, {}).items():
                    assert offset < len(numbers), f"{number} at {offset} of {key} is lost"
                    assert numbers[offset] == number, f"another message than {number} at {offset}"
                self._check_keys(topic, found)
                self.history.written[key] = dict(enumerate(numbers))
                self.history.synced[key] = dict(enumerate(numbers))

    def _check_messages(self, key: Key, found: list[MessageExt]) -> None:
        for each in found:
            number = number_of(each)
            assert each.body == self.history.sent[key][number], f"message {number} is damaged"
            assert each.properties["TAGS"] == f"Tag{number % 3}", f"message {number} is damaged"
        store = self.bench.store
        for each in found:
            (unit,) = store.queue_units(*key, each.queue_offset, 1)
            assert unit.offset_physical == each.offset_physical

    def _check_keys(self, topic: str, found: list[MessageExt]) -> None:
        for each in found[-3:]:
            hit = query(self.bench.store, each.properties["UNIQ_KEY"], topic=topic)
            offsets = [decode_record(record).offset_physical for record in hit.records]
            assert each.offset_physical in offsets, f"no key leads to {number_of(each)}"

    @staticmethod
    def _note(where: dict[Key, dict[int, int]], key: Key, offset: int, number: int) -> None:
        where.setdefault(key, {})[offset] = number


def number_of(found: MessageExt) -> int:
    """The number that a message was sent with."""
    return int(found.properties["UNIQ_KEY"][-12:], 16)


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + SEEDS))
def test_no_acknowledged_message_is_lost(seed: int) -> None:
    try:
        Schedule(seed).run()
    except BaseException as failure:
        failure.add_note(
            f"repeat it: FIRST_SEED={seed} SEEDS=1 python -m pytest tests/sim/{Path(__file__).name}"
        )
        raise

"""A truncation dies at every disk call: the next start finishes it, or it never began.

After each death: no record at or behind the point, every record before it, queues and index that
agree with the log, epochs that begin before the point; and the rejoined log takes the master's.
`CALL_STRIDE=1` dies at every call instead of some.
"""

import copy
import os
import random
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from core_broker.message import sysflag
from core_broker.message.model import MessageInner
from core_broker.message.topics import SCHEDULE_TOPIC
from core_broker.store.epoch_file import EpochFile
from core_broker.store.epochs import EpochCache
from core_broker.store.log_scan import LogScan
from core_broker.store.simulated_files import SimulatedFiles
from core_broker.store.truncation import Rollback
from tests.support.replicas import assert_equal, copy_log, log_bytes
from tests.support.stores import SEGMENT_BYTES, Bench, StillLoop, message, query, read_queue

ROOT = Path("/truncated/store")
MASTER = Path("/master/store")
EPOCHS = ROOT / "epochFileCheckpoint"
STRIDE = int(os.environ.get("CALL_STRIDE", "29"))
TOPICS = ("A", "B")
PREFIX, TAIL = 60, 90


class Died(BaseException):
    """The process was killed; no handler catches the exception."""


@dataclass
class World:
    """A store with a tail that the elected master does not have."""

    files: SimulatedFiles
    point: int
    end: int
    #: The log in front of the point.
    log: bytes


def inner_of(number: int, dice: random.Random) -> MessageInner:
    inner = message(
        number,
        topic=dice.choice(TOPICS),
        queue_id=dice.randrange(2),
        body=dice.randbytes(dice.randrange(500)),
    )
    kind = dice.random()
    if kind < 0.1:
        inner.topic, inner.queue_id = SCHEDULE_TOPIC, 2
        inner.properties["DELAY"] = "3"
    elif kind < 0.2:
        inner.sys_flag = sysflag.TRANSACTION_PREPARED
    return inner


def prepared(seed: int, *, point_at: str = "record", tail: int = TAIL) -> World:
    """A running store at the point of its truncation, in memory."""
    dice = random.Random(seed)
    files = SimulatedFiles(seed)
    bench = Bench(ROOT, files).open()
    prefix = [bench.put(inner_of(number, dice))[0] for number in range(PREFIX)]
    if point_at == "segment":
        number = PREFIX
        while prefix[-1].offset_physical % SEGMENT_BYTES:
            prefix.append(bench.put(inner_of(number, dice))[0])
            number += 1
        point = prefix.pop().offset_physical
    else:
        point = prefix[-1].offset_end
    bench.tick()
    EpochFile(files, EPOCHS).save(EpochCache([(1, 0), (2, point), (3, point + 100)]))
    for number in range(1000, 1000 + tail):
        bench.put(inner_of(number, dice))
        if dice.random() < 0.2:
            bench.tick()
    end = bench.store.max_offset_physical
    log = log_bytes(bench.store, 0, point)
    if dice.random() < 0.5:
        bench.store.close()
    else:
        bench.store.pause()
        files.kill()
    return World(files, point, end, log)


def truncate(files: SimulatedFiles, point: int, confirm: int = 0) -> Bench:
    """Start the store, truncate it, and serve."""
    bench = opened(files)
    if bench.store.max_offset_physical > point:
        bench.store.pause()
        bench.store.truncator.begin(point, confirm, Rollback())
        bench.store.reload()
        bench.store.truncator.end()
        serve(bench)
    return bench


def opened(files: SimulatedFiles, **changes: object) -> Bench:
    """Start the store; an unfinished truncation is finished."""
    bench = Bench(ROOT, files, **changes)
    bench.store.load()
    if bench.store.truncator.pending is not None:
        bench.store.truncator.end()
    serve(bench)
    return bench


def serve(bench: Bench) -> None:
    bench.store.start(StillLoop())  # type: ignore[arg-type]


def check(world: World, bench: Bench) -> None:
    store = bench.store
    assert store.max_offset_physical == world.point
    assert log_bytes(store, 0) == world.log
    names = world.files.names(ROOT / "commitlog")
    for name in names:
        if int(name) + SEGMENT_BYTES > world.point:
            behind = max(world.point - int(name), 0)
            content = world.files.open(ROOT / "commitlog" / name).pread(SEGMENT_BYTES, behind)
            assert not any(content), "bytes of a dropped record survive"
    expected: dict[tuple[str, int], list[int]] = {}
    log = store._log
    scan = LogScan(log, 0, check_crc=True)
    for record in scan:
        if record.sys_flag & sysflag.TRANSACTION_MASK == 0:
            expected.setdefault((record.topic, record.queue_id), []).append(record.offset)
        key = record.properties.decode().split("UNIQ_KEY\x01")[1].split("\x02")[0]
        assert query(store, key, topic=record.topic).records, (
            f"no key leads to the record at {record.offset}"
        )
    assert scan.end == world.point
    found = {
        (queue.topic, queue.queue_id): [
            unit.offset_physical
            for unit in queue.units(queue.min_offset, queue.max_offset - queue.min_offset)
        ]
        for queue in store._queues
    }
    assert {key: units for key, units in found.items() if units} == expected
    for (topic, queue_id), offsets in expected.items():
        assert len(read_queue(store, topic, queue_id)) == len(offsets)
    for number in range(1000, 1000 + TAIL, 9):
        for topic in (*TOPICS, SCHEDULE_TOPIC):
            assert not query(store, f"7F00000100002A9F0000{number:012X}", topic=topic).records
    assert EpochFile(world.files, EPOCHS).load().starts == [(1, 0)]
    assert not world.files.exists(ROOT / "truncation.json")


class LastCall:
    """The process dies right before its n-th disk call."""

    def __init__(self, number: int) -> None:
        self.left = number
        self.has_struck = False

    def __call__(self, operation: str, path: Path) -> None:
        if operation == "read":
            return
        self.left -= 1
        if self.left == 0:
            self.has_struck = True
            raise Died


def calls_of(world: World) -> int:
    files = copy.deepcopy(world.files)
    counter = LastCall(-1)
    files.fault = counter
    truncate(files, world.point)
    return -1 - counter.left


@pytest.mark.parametrize("point_at", ["record", "segment"])
@pytest.mark.parametrize("seed", range(3))
def test_a_truncation_drops_the_tail_and_nothing_else(seed: int, point_at: str) -> None:
    world = prepared(seed, point_at=point_at)
    check(world, truncate(world.files, world.point, world.point))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("end", ["killed", "without power"])
@pytest.mark.parametrize("seed", range(2))
def test_reliability_02_death_at_any_call_of_a_truncation(seed: int, end: str) -> None:
    world = prepared(seed)
    calls = calls_of(world)
    assert calls > 50
    outcomes = set()
    for call in range(1 + seed, calls + 1, STRIDE):
        attempt = World(copy.deepcopy(world.files), world.point, world.end, world.log)
        files = attempt.files
        files.random.seed(call)
        # The first start dies, then the start that finishes the truncation, then a third one.
        for number in (call, 1 + call % 23, 1 + call % 11):
            fault = files.fault = LastCall(number)
            with suppress(Died):
                truncate(files, world.point) if number == call else opened(files)
                files.fault = None
            if not fault.has_struck:
                break
            if end == "killed":
                files.kill()
            else:
                files.power_cut()
            files.fault = None
        files.kill()
        bench = opened(files)
        outcomes.add(bench.store.max_offset_physical == world.point)
        if bench.store.max_offset_physical != world.point:
            assert bench.store.max_offset_physical == world.end, call
            files.kill()
            bench = truncate(files, world.point)
        try:
            check(attempt, bench)
        except BaseException as failure:
            failure.add_note(f"seed {seed}, call {call} of {calls}, {end}")
            raise
        files.kill()
        check(attempt, opened(files))
    assert outcomes == {True, False}


@pytest.mark.parametrize("seed", range(4))
def test_a_truncated_log_takes_the_masters(seed: int) -> None:
    """The rejoined broker becomes a copy of the elected master."""
    dice = random.Random(seed)
    world = prepared(seed)
    old = opened(world.files)
    slave = Bench(MASTER, world.files, broker_role="SLAVE", broker_id=1).open()
    copy_log(old.store, slave.store, dice, world.point)
    old.store.close()
    slave.store.close()
    master = Bench(MASTER, world.files).open()
    for number in range(2000, 2080):
        master.put(inner_of(number, dice))
    truncate(world.files, world.point, world.point).store.close()
    rejoined = opened(world.files, broker_role="SLAVE", broker_id=1)
    copy_log(master.store, rejoined.store, dice)
    assert_equal(master.store, rejoined.store)
    rejoined.store.close()
    again = opened(world.files, broker_role="SLAVE", broker_id=1)
    assert_equal(master.store, again.store)

"""A change of the role dies at every disk call: afterwards it has happened, or it has not.

    rejoin      a master with a tail that nobody else has becomes a slave of the elected one:
                truncation, reload, rollback of tables, new epoch, copied bytes
    election    a slave becomes master, accepts messages, and is elected again in a newer epoch

After each death and restart the log, its epochs, queues, index, consumer offsets, and the progress
of delayed and half messages are all those before the truncation, or all those after it. No
confirmed message is lost, and the broker then becomes a copy of the master that is elected.
`CALL_STRIDE=1` dies at every call instead of some.
"""

import asyncio
import copy
import os
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from core_broker.store import message_store
from core_broker.store.simulated_files import SimulatedFiles
from tests.support.replicas import assert_equal, copy_log
from tests.support.role_brokers import RoleBroker
from tests.support.stores import Bench

STRIDE = int(os.environ.get("CALL_STRIDE", "29"))
OLD, NEW = 1, 2
BOTH = frozenset({OLD, NEW})
FLUSHES = {"killed": "ASYNC_FLUSH", "without power": "SYNC_FLUSH"}

Progress = tuple[list[tuple[str, str, int, int]], dict[int, int]]
Epochs = list[tuple[int, int]]


class Died(BaseException):
    """The process was killed; no handler catches the exception."""


class LastCall:
    """A process dies right before its n-th disk call."""

    def __init__(self, root: Path, number: int) -> None:
        self.left = number
        self.struck = asyncio.Event()
        self._root = root

    def __call__(self, operation: str, path: Path) -> None:
        if self.struck.is_set():
            raise Died  # what the process would have done next
        if operation == "read" or self._root not in path.parents:
            return
        self.left -= 1
        if self.left == 0:
            self.struck.set()
            raise Died


@dataclass
class World:
    """The disks of two brokers; the newer one is elected in `epoch`."""

    files: SimulatedFiles
    settings: dict[str, Any]
    now_ms: int
    epoch: int
    #: End of the confirmed messages, and begin of the epoch.
    point: int
    #: The log of the old master, without a message that was accepted and not written yet.
    old_log: bytes
    old_epochs: Epochs
    old_progress: Progress
    new_log: bytes
    new_epochs: Epochs

    def copied(self, seed: int) -> "World":
        """Another world with the same disks."""
        files = copy.deepcopy(self.files)
        files.random.seed(seed)
        return World(**(vars(self) | {"files": files}))

    def old(self) -> RoleBroker:
        """Start the old master."""
        return RoleBroker(self.files, "old", OLD, self.now_ms, **self.settings)

    def new(self) -> RoleBroker:
        """Start the elected broker."""
        return RoleBroker(self.files, "new", NEW, self.now_ms, **self.settings)

    def end(self, how: str) -> None:
        """End all processes."""
        self.files.fault = None
        if how == "killed":
            self.files.kill()
        else:
            self.files.power_cut()


@pytest.fixture(autouse=True)
def _no_timers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores tick when the test says so."""
    monkeypatch.setattr(message_store, "TICK_S", 3_600.0)


async def divided(seed: int, end: str) -> World:
    """The old master has a tail that the elected one, which went on, does not have."""
    dice = random.Random(seed)
    files = SimulatedFiles(seed)
    settings = {"flush_disk_type": FLUSHES[end]}
    old, new = (
        RoleBroker(files, name, number, **settings) for name, number in (("old", OLD), ("new", NEW))
    )
    assert await old.lead(1, BOTH)
    await old.work(dice, 60, is_confirmed=True)
    await old.check_half_messages()
    old.ctx.store.gate.confirm(old.end)
    point, epoch = old.end, 2
    await new.follow(old, 1)
    await new.copy(old, dice)
    assert new.log == old.log
    for group, topic, queue_id, offset in old.ctx.offsets.rows():
        new.ctx.offsets.commit(group, topic, queue_id, offset)
    for level, offset in old.progress[1].items():
        new.ctx.delay_progress.advance(level, offset)
    if seed % 2:
        # A first election that nobody noticed: the tail has an epoch of its own.
        assert await old.lead(2, BOTH)
        epoch = 3
    await old.work(dice, 25, is_confirmed=False)
    old.now_ms += 60_000
    old.delays.deliver_due()
    await old.check_half_messages()
    old.ctx.offsets.commit("G", "T", 0, old.ctx.store.queue_range("T", 0)[1] + 3)
    old.run_io()
    await old.save()
    new.now_ms = old.now_ms
    assert await new.lead(epoch, frozenset({NEW}))
    await new.work(dice, 40, is_confirmed=False)
    assert new.end > point < old.end
    world = World(
        *(files, settings, old.now_ms + 1_000, epoch, point),
        *(old.log, old.epochs, old.progress, new.log, new.epochs),
    )
    for broker in (old, new):
        broker.ctx.store.close()
    await ended_tasks()
    return world


async def ended_tasks() -> None:
    """Let nothing of a dead process run on."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def rejoin(old: RoleBroker, new: RoleBroker, epoch: int, seed: int) -> None:
    """The old master becomes a copy of the elected one."""
    await old.follow(new, epoch)
    await old.copy(new, random.Random(seed))


async def deposed(world: World, seed: int) -> None:
    """The old master still leads when it hears of the election, or has just started again."""
    old, new = world.old(), world.new()
    if seed % 3:
        assert await old.lead(world.old_epochs[-1][0], BOTH)
        old.stage(queue_id=0)  # accepted, and not written yet
    await rejoin(old, new, world.epoch, seed)


def check_whole(broker: RoleBroker) -> None:
    """Queues and index are those of a store that is rebuilt from the log."""
    rebuilt = Bench(Path("/rebuilt"), SimulatedFiles(), broker_role="SLAVE", broker_id=9).open()
    store, is_closed = broker.ctx.store, broker.ctx.store.gate.is_closed
    copy_log(store, rebuilt.store, random.Random(1))
    store.gate.open()  # also the messages that no reader may see yet
    assert_equal(store, rebuilt.store)
    if is_closed:
        store.gate.close()
    assert broker.lost_progress() == []


def check_rejoined(world: World, old: RoleBroker, after: Progress) -> bool:
    """Check a restarted broker; returns whether the truncation has happened."""
    log, epochs, point = old.log, old.epochs, world.point
    known = [each for each in epochs if each[1] < old.end]
    is_after = not log.startswith(world.old_log)
    if is_after:
        assert len(log) >= point, "confirmed messages are lost"
        assert world.new_log.startswith(log)
        assert known == [each for each in world.new_epochs if each[1] < old.end]
        assert set(epochs) <= set(world.new_epochs)
        assert old.progress == after
    else:
        assert epochs == world.old_epochs
        assert old.progress == world.old_progress
    check_whole(old)
    return is_after


async def calls_of(root: str, world: World, change: Callable[[World], Awaitable[None]]) -> int:
    """Count the disk calls of a change."""
    counter = LastCall(Path("/") / root, -1)
    attempt = world.copied(0)
    attempt.files.fault = counter
    await change(attempt)
    await ended_tasks()
    return -1 - counter.left


async def dying(world: World, fault: LastCall, change: Awaitable[None]) -> bool:
    """Make a change until the process dies; False when it does not."""
    world.files.fault = fault
    # The last call may be one of a callback, which nobody awaits.
    tasks = [asyncio.ensure_future(each) for each in (change, fault.struck.wait())]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    await ended_tasks()
    with suppress(Died, asyncio.CancelledError):
        await tasks[0]
    return fault.struck.is_set()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("end", ["killed", "without power"])
@pytest.mark.parametrize("seed", range(4))
async def test_reliability_02_death_at_any_call_of_a_rejoin(seed: int, end: str) -> None:
    world = await divided(seed, end)
    whole = world.copied(0)
    await deposed(whole, seed)
    whole.end("killed")
    after = whole.old().progress
    assert after != world.old_progress
    calls = await calls_of("old", world, lambda each: deposed(each, seed))
    assert calls > 100
    outcomes = set()
    for call in range(1 + seed * 7 % STRIDE, calls + 1, STRIDE):
        attempt = world.copied(call)
        root = Path("/old")
        try:
            assert await dying(attempt, LastCall(root, call), deposed(attempt, seed))
            attempt.end(end)
            for number in (1 + call % 23, 1 + call % 47):  # starts that die, too
                if await dying(attempt, LastCall(root, number), started(attempt)):
                    attempt.end(end)
            attempt.end("killed")
            old, new = attempt.old(), attempt.new()
            outcomes.add(check_rejoined(world, old, after))
            await rejoin(old, new, world.epoch, call)
            assert old.log == new.log
            assert old.epochs == new.epochs
            check_whole(old)
            attempt.end("killed")
            assert check_rejoined(world, attempt.old(), after)
        except BaseException as failure:
            failure.add_note(f"seed {seed}, call {call} of {calls}, {end}")
            raise
        await ended_tasks()
    assert outcomes == {True, False}


async def started(world: World) -> None:
    """Start the old master."""
    world.old()


async def elected(world: World, seed: int) -> None:
    """The slave is elected, accepts messages, and is elected again."""
    new, dice = world.new(), random.Random(seed)
    assert await new.lead(world.epoch, BOTH)
    await new.work(dice, 6, is_confirmed=False)
    assert await new.lead(world.epoch + 1, BOTH)
    await new.work(dice, 6, is_confirmed=False)
    await new.save()
    new.tick(61_000)


async def in_sync(seed: int, end: str) -> World:
    """Both brokers have the same log; the newer one will be elected."""
    dice = random.Random(seed)
    files = SimulatedFiles(seed)
    settings = {"flush_disk_type": FLUSHES[end]}
    old, new = (
        RoleBroker(files, name, number, **settings) for name, number in (("old", OLD), ("new", NEW))
    )
    assert await old.lead(1, BOTH)
    await old.work(dice, 60, is_confirmed=True)
    await new.follow(old, 1)
    await new.copy(old, dice)
    assert new.ctx.store.gate.confirmed == new.end
    await new.save()
    world = World(
        *(files, settings, old.now_ms + 1_000, 2, old.end),
        *(old.log, old.epochs, new.progress, new.log, new.epochs),
    )
    for broker in (old, new):
        broker.ctx.store.close()
    await ended_tasks()
    return world


def check_elected(world: World, new: RoleBroker) -> None:
    """Every byte of a restarted broker is in the epoch of its master."""
    log, epochs, epoch = new.log, new.epochs, world.epoch
    assert log.startswith(world.old_log), "confirmed messages are lost"
    assert epochs[:1] == world.old_epochs
    assert [each[0] for each in epochs[1:]] in ([], [epoch], [epoch, epoch + 1], [epoch + 1])
    if len(log) > world.point:
        assert epochs[1] == (epoch, world.point), "messages outside of an epoch"
    assert all(start <= len(log) for _, start in epochs)
    check_whole(new)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("end", ["killed", "without power"])
@pytest.mark.parametrize("seed", range(3))
async def test_reliability_02_death_at_any_call_of_an_election(seed: int, end: str) -> None:
    world = await in_sync(seed, end)
    calls = await calls_of("new", world, lambda each: elected(each, seed))
    assert calls > 50
    seen = set()
    for call in range(1 + seed * 5 % STRIDE, calls + 1, STRIDE):
        attempt = world.copied(call)
        try:
            assert await dying(attempt, LastCall(Path("/new"), call), elected(attempt, seed))
            attempt.end(end)
            new, old = attempt.new(), attempt.old()
            check_elected(world, new)
            seen.add(len(new.epochs))
            if call % 2:
                # The controllers know it as the master of its last epoch, or of a newer one.
                epoch = max(new.epochs[-1][0], world.epoch)
                assert await new.lead(epoch, BOTH)
                await new.work(random.Random(call), 5, is_confirmed=False)
                assert new.epochs[-1][0] == epoch
                await rejoin(old, new, epoch, call)
            else:
                # Another one is elected: what was never confirmed goes.
                assert await old.lead(world.epoch + 5, BOTH)
                await old.work(random.Random(call), 5, is_confirmed=False)
                await rejoin(new, old, world.epoch + 5, call)
            assert old.log == new.log
            assert old.epochs == new.epochs
            assert new.log.startswith(world.old_log)
            for broker in (old, new):
                check_whole(broker)
        except BaseException as failure:
            failure.add_note(f"seed {seed}, call {call} of {calls}, {end}")
            raise
        await ended_tasks()
    assert len(seen) > 1

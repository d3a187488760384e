"""Brokers under controllers on one simulated disk, without a network: role changes step by step.

A broker object is one life of a broker, from its start to its death. `lead` and `follow` change its
role as the replica manager does, `copy` moves the master's bytes through both ends of the real
replication protocol, in pieces of random sizes.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from core_broker.broker.registration import Registration
from core_broker.broker.role_changes import Mastership, RoleChanges, RoleParts
from core_broker.broker.saving import TableSaver
from core_broker.broker.truncation import finish_truncation
from core_broker.errors import ProtocolError, StoreCorrupt
from core_broker.ha.faults import DivergedLog
from core_broker.ha.switch_master import LogRange, MasterSession
from core_broker.ha.switch_replication import SwitchReplication
from core_broker.message.record import decode_record
from core_broker.message.topics import (
    SCHEDULE_TOPIC,
    TRANS_HALF_TOPIC,
    TRANS_OP_HALF_TOPIC,
    TRANSACTION_GROUP,
)
from core_broker.message.transactions import ended_halves
from core_broker.processors.context import ConfigTable
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.headers import EndTransactionRequestHeader
from core_broker.state.config_files import backup_of
from core_broker.store.files import read_file
from core_broker.store.log_scan import LogRecord, LogScan
from core_broker.store.simulated_files import SimulatedFiles
from tests.support.broker_harness import BrokerHarness, NoteRegistrar
from tests.support.broker_requests import send_header
from tests.support.half_messages import COMMIT, HALF, ROLLBACK
from tests.support.replicas import log_bytes
from tests.support.stores import ManualExecutor

TOPIC, GROUP = "T", "G"
QUEUES = 2


class SimulatedTables:
    """The files of the tables on a simulated disk, with the disk calls of config_files.py."""

    def __init__(self, files: SimulatedFiles) -> None:
        self._files = files

    def write(self, path: Path, parts: Sequence[bytes]) -> None:
        """Replace a file, and keep the previous version."""
        files = self._files
        files.make_dir(path.parent)
        fresh = path.with_name(path.name + ".tmp")
        file = files.open(fresh, create=True)
        file.truncate(0)
        file.pwrite(b"".join(parts), 0)
        file.sync()
        if files.exists(path):
            files.remove(backup_of(path))
            files.check("link", path)
            files._rename_to(backup_of(path), files._node(path))
        files.rename(fresh, path)
        files.sync_dir(path.parent)

    def read(self, path: Path, parse: Callable[[bytes], object]) -> None:
        """Parse a file, or else its previous version."""
        damage = ""
        for candidate in (path, backup_of(path)):
            if self._files.exists(candidate) and (content := read_file(self._files, candidate)):
                try:
                    parse(content)
                except ProtocolError as error:
                    damage = str(error)
                else:
                    return
        if damage:
            raise StoreCorrupt(str(path), 0, damage)


class NoteRegistration(NoteRegistrar):
    """The part of a broker that registers at name servers, of which there are none."""

    master_found: object = None

    async def start(self, addr: str) -> None:
        """Register for the first time."""


class Wire:
    """Keeps what a slave sends to its master."""

    def __init__(self) -> None:
        self.data = b""
        self.transport = SimpleNamespace(get_write_buffer_size=lambda: 0)

    def write(self, data: bytes) -> None:
        self.data += data

    def take(self) -> bytes:
        data, self.data = self.data, b""
        return data


class RoleBroker(BrokerHarness):
    """One life of a broker of a set. Fenced after the start, as every broker under controllers."""

    def __init__(
        self, files: SimulatedFiles, name: str, broker_id: int, now_ms: int = 0, **settings: Any
    ) -> None:
        self.files = files
        self.broker_id = broker_id
        self.root = Path("/") / name
        self.numbers = 0
        self._now_at_start = now_ms
        self._ended: set[int] = set()
        super().__init__(
            self.root,
            files,
            enable_controller_mode=True,
            all_ack_in_sync_state_set=True,
            broker_id=broker_id,
            **settings,
        )

    def _open(self) -> None:
        self.now_ms = max(self.now_ms, self._now_at_start)
        ctx, tables = self.ctx, SimulatedTables(self.files)
        self.topic(TOPIC, QUEUES)
        self.tables = TableSaver(
            self.root / "store" / "config",
            {
                ConfigTable.OFFSETS: ctx.offsets.slices,
                ConfigTable.DELAYS: lambda: [ctx.delay_progress.encode()],
                ConfigTable.TOPICS: ctx.topics.parts,
                ConfigTable.GROUPS: ctx.groups.parts,
            },
            ManualExecutor("broker-config"),
            tables.write,
        )
        ctx.saver = self.tables
        self.replication = SwitchReplication(ctx.store, lambda: ctx.config)
        self.roles = RoleChanges(
            RoleParts(
                ctx,
                self.replication,
                self.requests,
                cast("Registration", NoteRegistration()),
                self.delays,
                self.checks,
                self.tables,
                None,
                [],
            )
        )
        ctx.store.load()
        tables.read(self.tables.path(ConfigTable.OFFSETS), ctx.offsets.restore)
        tables.read(self.tables.path(ConfigTable.DELAYS), ctx.delay_progress.restore)
        finish_truncation(ctx, self.tables)
        self.roles.fence()
        ctx.store.start(asyncio.get_running_loop())

    # -- state --

    @property
    def end(self) -> int:
        """End of the log."""
        return self.ctx.store.max_offset_physical

    @property
    def log(self) -> bytes:
        """The bytes of the log."""
        return log_bytes(self.ctx.store, 0)

    @property
    def epochs(self) -> list[tuple[int, int]]:
        """The epochs with their first offsets."""
        return self.ctx.store.epochs.cache.starts

    @property
    def progress(self) -> tuple[list[tuple[str, str, int, int]], dict[int, int]]:
        """The consumer offsets and the progress of the delay levels."""
        delays = self.ctx.delay_progress
        return sorted(self.ctx.offsets.rows()), {
            each: delays.offset(each) for each in delays.levels
        }

    def run_io(self) -> None:
        """Run all pending jobs of the store."""
        while any(executor.step() for executor in self.executors):
            pass

    def tick(self, ms: int = 1_000) -> None:
        """Let time pass."""
        self.now_ms += ms
        self.ctx.store.tick(self.now_ms)
        self.run_io()

    async def save(self) -> None:
        """Write the tables with progress."""
        for table in (ConfigTable.OFFSETS, ConfigTable.DELAYS):
            done: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
            self.tables.save(table, done.set_result)
            assert await done is None

    # -- roles --

    async def lead(self, epoch: int, members: frozenset[int]) -> bool:
        """Become the elected master of an epoch."""
        mastership = Mastership(self.broker_id, self.ctx.addr, epoch, epoch, members)
        is_master = await self.roles.to_master(self.broker_id, mastership)
        await self.roles._steps.end_services()  # the test takes each of their steps
        return is_master

    async def follow(self, master: "RoleBroker", epoch: int) -> None:
        """Become a slave of the elected master."""
        members = frozenset({master.broker_id})
        mastership = Mastership(master.broker_id, "127.0.0.1:1", epoch, epoch, members)
        await self.roles.to_slave(self.broker_id, mastership)
        assert self.roles.follower is not None
        tasks, self.roles.follower._tasks = self.roles.follower._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def copy(self, master: "RoleBroker", dice: random.Random) -> None:
        """Compare both logs, truncate, and copy all bytes of the master."""
        assert self.roles.follower is not None
        client = self.roles.follower._switch
        client._compare_records = partial(self._compare, master)
        session, wire = MasterSession(master.ctx.store.epochs.cache), Wire()
        writer = cast("asyncio.StreamWriter", wire)
        log = LogRange(0, master.end, master.ctx.store.replica.segment_size)
        client._begin(writer)
        while session.next_offset < 0:
            for frame in session.received(wire.take(), log, 1):
                await client._received(frame, writer)
        confirmed = master.ctx.store.gate.confirmed
        while piece := session.next_piece(log, confirmed, dice.choice((90, 700, 9_000)), 1):
            body = log_bytes(master.ctx.store, piece.offset, piece.offset + piece.size)
            await client._received(piece.header + body, writer)
            if dice.random() < 0.2:
                self.tick(10)
        await client._received(session.heartbeat(confirmed) or b"", writer)
        self.run_io()

    async def _compare(self, master: "RoleBroker") -> None:
        at = self.ctx.store.replica.last_record
        if at >= 0 and self.log[at:] != master.log[at : self.end]:
            raise DivergedLog("the newest record differs")

    # -- load --

    def stage(self, properties: str = "", **fields: Any) -> None:
        """Send one message without waiting for the answer, which may wait for slaves."""
        self.numbers += 1
        key = f"{self.broker_id}-{self.numbers}"
        unique = f"UNIQ_KEY\x01{key}\x02WAIT\x01true"
        header = send_header(
            TOPIC,
            f"{properties}\x02{unique}" if properties else unique,
            born_timestamp=self.now_ms,
            **fields,
        )
        body = key.encode() + b" " + b"x" * (self.numbers * 37 % 400)
        self.give(self.request(RequestCode.SEND_MESSAGE_V2, header, body))

    async def work(self, dice: random.Random, count: int, *, is_confirmed: bool) -> None:
        """Do what clients and services of a master cause; messages are confirmed at once or not."""
        for _ in range(count):
            kind = dice.randrange(10)
            if kind < 4:
                self.stage(queue_id=dice.randrange(QUEUES))
            elif kind < 6:
                self.stage(f"DELAY\x01{dice.randrange(1, 3)}", queue_id=dice.randrange(QUEUES))
            elif kind < 7:
                half = HALF.replace("UNIQ_KEY\x01U1\x02", "").replace("\x02WAIT\x01true", "")
                self.stage(half, queue_id=0, sys_flag=4)
            elif kind < 8:
                await self._end_half(dice)
            elif kind < 9:
                self.now_ms += dice.choice((10, 6_000))
                self.delays.deliver_due()
                self.ctx.offsets.commit(GROUP, TOPIC, 0, self.ctx.store.queue_range(TOPIC, 0)[1])
            else:
                self.tick(dice.choice((100, 61_000)))
            self.run_io()
            if is_confirmed:
                self.ctx.store.gate.confirm(self.end)

    async def _end_half(self, dice: random.Random) -> None:
        halves = [
            each
            for each in await self.messages(TRANS_HALF_TOPIC)
            if each.queue_offset not in self._ended
        ]
        if not halves:
            return
        half = dice.choice(halves)
        self._ended.add(half.queue_offset)
        header = EndTransactionRequestHeader(
            producer_group="PG",
            tran_state_table_offset=half.queue_offset,
            commit_log_offset=half.offset_physical,
            commit_or_rollback=dice.choice((COMMIT, ROLLBACK)),
            msg_id=half.msg_id,
        )
        self.give(self.request(RequestCode.END_TRANSACTION, header))

    # -- checks --

    def records(self) -> list[LogRecord]:
        """All records of the log."""
        return list(LogScan(self.ctx.store._log, 0, check_crc=True))

    def lost_progress(self) -> list[str]:
        """Delayed and half messages of the log that would never be delivered or ended."""
        delays, offsets = self.ctx.delay_progress, self.ctx.offsets
        found = [
            decode_record(log_bytes(self.ctx.store, each.offset, each.offset + each.size))
            for each in self.records()
        ]
        delivered = {each.properties["UNIQ_KEY"] for each in found if each.topic == TOPIC}
        problems = [
            f"delayed {each.properties['UNIQ_KEY']} of queue {each.queue_id}"
            for each in found
            if each.topic == SCHEDULE_TOPIC
            and each.queue_offset < delays.offset(each.queue_id + 1)
            and each.properties["UNIQ_KEY"] not in delivered
        ]
        first_half, first_op = (
            offsets.committed(TRANSACTION_GROUP, topic, 0) or 0
            for topic in (TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC)
        )
        ops = [each for each in found if each.topic == TRANS_OP_HALF_TOPIC]
        ended = {half for op in ops for half in ended_halves(op)}
        halves = {
            each.properties["UNIQ_KEY"]: each.queue_offset
            for each in found
            if each.topic == TRANS_HALF_TOPIC
        }
        problems += [
            f"half {key} at {at}"
            for key, at in halves.items()
            if at < first_half and at not in ended
        ]
        return problems + [
            f"op {op.queue_offset} of half {half}"
            for op in ops
            for half in ended_halves(op)
            if half >= first_half and op.queue_offset < first_op
        ]

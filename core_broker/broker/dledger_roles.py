"""The role of a broker with a DLedger commit log: master while its member leads, else slave.

    leader      own entry, if others wait for the majority or as the first · all committed ·
                accept · services · id 0, register
    follower    refuse · services end · tables of the leader · id: number of dLegerSelfId + 1
    candidate   as a follower, without a leader

A start is fenced, and registers nothing before the group has a leader. A member that stops leading
is fenced before the event that ended its leadership has any other effect. Compatible with
RocketMQ's DLedgerRoleChangeHandler and DLedgerCommitLog.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from core_broker.broker.role_steps import RoleSteps, StepParts
from core_broker.broker.saving import TableSaver
from core_broker.broker.truncation import truncate
from core_broker.dledger.leader_tables import LeaderTables
from core_broker.dledger.member import Member
from core_broker.dledger.model import Role
from core_broker.dledger.owner import Hooks, Standing
from core_broker.dledger.peers import group_of
from core_broker.errors import StoreReadOnly, TruncationRefused
from core_broker.ha.master import monotonic_ms
from core_broker.ha.waiting_sends import Replicated, WaitingSends
from core_broker.message.model import MessageInner
from core_broker.message.topics import SELF_TEST_TOPIC
from core_broker.remoting.bodies import HARuntimeInfo
from core_broker.remoting.client import RpcHook
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.tls_client import ClientTls
from core_broker.store import PutStatus

#: Wait of a send for the majority, ms: DLedger's maxWaitAckTimeMs.
ACK_MS = 2_500
#: Interval of checks of that time, seconds.
EXPIRE_S = 0.1
#: Pause before another attempt to lead when the own entry cannot be written, seconds.
RETRY_S = 0.5

log = logging.getLogger(__name__)


class DLedgerParts(NamedTuple):
    """What the roles need of a broker."""

    steps: StepParts
    saver: TableSaver
    tls: ClientTls | None
    hooks: list[RpcHook]


class DLedgerRoles:
    """Follows the member. Also the copies of the log for sends that wait (`Replicas`)."""

    def __init__(self, parts: DLedgerParts) -> None:
        """Prepare; raises SettingsError for wrong peers."""
        self._parts = parts
        self._ctx = ctx = parts.steps.ctx
        self._steps = RoleSteps(parts.steps)
        self._group = group_of(ctx.config)
        self._tables = LeaderTables(
            ctx, parts.steps.registration, parts.tls, parts.hooks, self._leader_changed_ms
        )
        hooks = Hooks(
            *(self._flush, self._changed, self._handing_over, self._committed, self._truncate)
        )
        self.member = Member(self._group, ctx.store, ctx.config, hooks)
        #: What the broker does; None while fenced.
        self._acting: Standing | None = None
        self._changed_ms = 0
        self._waits = WaitingSends()
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._is_stopping = False

    # -- life --

    def fence(self) -> None:
        """Begin: refuse messages, and hide those that are not committed."""
        self._steps.become("SLAVE", self._group.number + 1)
        self._ctx.store.gate.close()

    async def start(self) -> None:
        """Join the group; raises CannotListen and StoreCorrupt."""
        await self.member.start()
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._run()), loop.create_task(self._expire())]

    async def stop(self) -> None:
        """Leave the group; sends that wait are refused."""
        self._is_stopping = True
        self._wake.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._steps.end_services()
        await self._tables.close()
        await self.member.stop()
        self._waits.abandon(ResponseCode.SERVICE_NOT_AVAILABLE)

    @property
    def problem(self) -> str:
        """The reason why the broker has no role, or cannot follow; "" in a role."""
        if self.member.problem:
            return self.member.problem
        standing = self.member.standing
        if standing.role is Role.CANDIDATE:
            return f"the group {self._group.name} has no leader in term {standing.term}"
        return "" if self._acting == standing else f"becoming {standing.role.value}"

    def varz(self) -> dict[str, Any]:
        """Return member and role for /varz."""
        return self.member.varz() | {
            "confirm_offset": self._ctx.store.gate.confirmed,
            "is_acting": self._acting == self.member.standing,
            "broker_role": self._ctx.config.broker_role,
            "broker_id": self._ctx.config.broker_id,
            "master_addr": self._tables.master_addr,
            "role_changes": self._steps.changes,
            "waiting_sends": len(self._waits),
            "unsynchronized": self._tables.problems,
        }

    # -- hooks of the member --

    def _flush(self) -> None:
        """Write the accepted messages of a leader before an input that may end the leadership."""
        entries = self._ctx.store.entries
        is_leader = self.member.standing.role is Role.LEADER
        if is_leader and entries is not None and entries.has_staged:
            self._steps.end_sends()

    def _changed(self, standing: Standing) -> None:
        if standing.role is not Role.LEADER:
            self._ctx.store.replica.set_active(True)
            self._waits.abandon(ResponseCode.SERVICE_NOT_AVAILABLE)
        self._changed_ms = monotonic_ms()
        self._wake.set()

    def _handing_over(self, transferee: str | None) -> None:
        if transferee is not None:
            log.warning("This broker hands the leadership of its group over to %s", transferee)
        acting = self._acting
        if acting is not None and acting.role is Role.LEADER and acting == self.member.standing:
            self._ctx.store.replica.set_active(transferee is not None)

    def _committed(self) -> None:
        self._waits.settle([self._ctx.store.gate.confirmed])
        self._wake.set()

    async def _truncate(self, position: int) -> None:
        # The services of the master that this broker was may still write.
        await self._woken(lambda: self._is_stopping or self._has_left)
        if self._is_stopping:
            # The role no longer follows the member. The leader asks again at the next start.
            raise TruncationRefused(position, "the broker is stopping")
        ctx = self._ctx
        await truncate(ctx, self._parts.saver, position, ctx.store.gate.confirmed)

    @property
    def _has_left(self) -> bool:
        return self._acting is not None and self._acting.role is not Role.LEADER

    def _leader_changed_ms(self) -> int:
        return self._changed_ms

    # -- the role --

    async def _run(self) -> None:
        while True:
            standing = self.member.standing
            try:
                if standing != self._acting:
                    await self._act(standing)
            except Exception:
                log.exception("the change to %s failed; trying again", standing.role.value)
                await asyncio.sleep(RETRY_S)
            await self._woken(lambda: self.member.standing != self._acting)

    async def _woken(self, is_due: Callable[[], bool]) -> None:
        while not is_due():
            self._wake.clear()
            await self._wake.wait()

    async def _act(self, standing: Standing) -> None:
        was = self._acting
        if standing.role is Role.LEADER:
            await self._lead(standing)
            return
        if was is None or was.role is Role.LEADER:
            await self._leave()
        self._acting = standing
        self._wake.set()
        has_role = standing.role is Role.FOLLOWER or was is not None
        if has_role and (was is None or was.role is Role.LEADER or was[2] != standing[2]):
            self._tables.follow()
            self._steps.register(0)
        if standing.role is Role.FOLLOWER:
            log.warning(
                "This broker is a slave: member %s leads group %s in term %d",
                *(standing.leader_id, self._group.name, standing.term),
            )

    async def _leave(self) -> None:
        """End the present role; afterwards nothing but the member writes to the log."""
        self._steps.become("SLAVE", self._group.number + 1)
        self._ctx.replicas = None
        await self._steps.end_services()
        await self._tables.rest()

    async def _lead(self, standing: Standing) -> None:
        ctx, store = self._ctx, self._ctx.store
        entries = store.entries
        assert entries is not None
        await self._leave()
        if self.member.standing != standing:
            return
        entries.term = standing.term
        store.replica.set_active(False)
        end = entries.end_index
        # In an empty log it is the first entry: followers get a full vote by copying one.
        if end > self.member.commit_index or end < 0:
            end += 1
            self._append_own(standing)
        await self._woken(
            lambda: self.member.commit_index >= end or self.member.standing != standing
        )
        if self.member.standing != standing:
            return
        ctx.replicas, ctx.ha_client_info = self, None
        self._steps.become("SYNC_MASTER", 0)
        self._steps.start_services()
        self._acting = standing
        self._steps.register(0)
        log.warning(
            "This broker is the master of %s: it leads group %s in term %d, behind entry %d",
            *(ctx.config.broker_name, self._group.name, standing.term, end),
        )

    def _append_own(self, standing: Standing) -> None:
        """Append a message of this term: entries of earlier terms are committed with it."""
        ctx = self._ctx
        now_ms = ctx.now_ms()
        inner = MessageInner(
            topic=SELF_TEST_TOPIC,
            queue_id=0,
            body=f"{self._group.self_id} leads in term {standing.term}".encode(),
            properties={},
            born_timestamp=now_ms,
            born_host=ctx.host,
            store_host=ctx.host,
        )
        if ctx.store.put(inner).status is not PutStatus.PUT_OK:
            raise StoreReadOnly(ctx.store.read_only_reason or "the store accepts no message")
        ctx.store.write_staged()

    # -- sends --

    def when_replicated(self, end: int, then: Replicated) -> None:
        """Call back when a majority has all bytes before `end`, or after ACK_MS."""
        if self.member.standing.role is not Role.LEADER:
            then(ResponseCode.SERVICE_NOT_AVAILABLE)
            return
        self._waits.add(end, 1, monotonic_ms() + ACK_MS, then)
        self._waits.settle([self._ctx.store.gate.confirmed])

    @property
    def waiting(self) -> int:
        """Number of callbacks that wait for the majority."""
        return len(self._waits)

    def status(self) -> HARuntimeInfo:
        """Return the end of the log; the replication of DLedger is no HA connection."""
        return HARuntimeInfo(master_commit_log_max_offset=self._ctx.store.max_offset_physical)

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(EXPIRE_S)
            self._waits.expire(monotonic_ms())

"""Changes the role of a running broker: fenced, slave of an elected master, or elected master.

    to master   stop copying · epoch on the disk · sync-state set · accept · services · register
    to slave    refuse · services end · waiting sends end · copy from the master · register

Every start is fenced, and no role is kept on the disk: a broker that dies within a change comes
back as a slave without a master. A master accepts nothing before its epoch is on the disk, so no
byte is ever written outside of the epoch of its master. A send that waits when its broker becomes a
slave is refused: the message may survive or not. Compatible with RocketMQ's ReplicasManager and
BrokerController.changeToMaster.
"""

import logging
from typing import NamedTuple

from core_broker.broker.registration import Registration
from core_broker.broker.role_steps import RoleSteps, StepParts
from core_broker.broker.saving import TableSaver
from core_broker.broker.truncation import truncate
from core_broker.ha.switch_follower import Follower
from core_broker.ha.switch_replication import SwitchReplication
from core_broker.ha.sync_states import SyncStates
from core_broker.processors.context import BrokerContext
from core_broker.processors.delay_delivery import DelayDelivery
from core_broker.processors.table import RequestTable
from core_broker.processors.transaction_checks import TransactionChecks
from core_broker.remoting.client import RpcHook
from core_broker.remoting.tls_client import ClientTls

log = logging.getLogger(__name__)


class Mastership(NamedTuple):
    """Who is master, as the controllers say."""

    master_id: int
    master_addr: str
    epoch: int
    set_epoch: int
    members: frozenset[int]


class RoleParts(NamedTuple):
    """The parts of a broker that work in one role only, or must know the role."""

    ctx: BrokerContext
    replication: SwitchReplication
    requests: RequestTable
    registration: Registration
    delays: DelayDelivery
    checks: TransactionChecks
    saver: TableSaver
    tls: ClientTls | None
    hooks: list[RpcHook]


class RoleChanges:
    """Owns the role. One change at a time; the caller waits for each."""

    def __init__(self, parts: RoleParts) -> None:
        #: The mastership in force; None while fenced.
        self.current: Mastership | None = None
        #: The part that copies from the master; None on a master and while fenced.
        self.follower: Follower | None = None
        #: Number of times this broker became the master since the start.
        self.elections_won = 0
        self._parts = parts
        self._steps = RoleSteps(
            StepParts(parts.ctx, parts.requests, parts.registration, parts.delays, parts.checks)
        )

    @property
    def changes(self) -> int:
        """Number of role changes since the start."""
        return self._steps.changes

    @property
    def is_master(self) -> bool:
        """True on the elected master."""
        return self._parts.replication.states is not None

    def fence(self) -> None:
        """Begin: refuse messages, and hide those that are not confirmed."""
        ctx = self._parts.ctx
        self._steps.become("SLAVE", ctx.config.broker_id)
        if ctx.config.all_ack_in_sync_state_set:
            ctx.store.gate.close()

    async def to_master(self, broker_id: int, mastership: Mastership) -> bool:
        """Accept messages in an epoch; False when the log has a newer epoch.

        Raises OSError when the epoch cannot be written; the broker is then fenced.
        """
        parts = self._parts
        ctx, store = parts.ctx, parts.ctx.store
        await self._leave()
        if not _has_epoch(ctx, mastership.epoch):
            log.error(
                "epoch %d is refused: this broker's log has epoch %d",
                *(mastership.epoch, store.epochs.cache.last_epoch),
            )
            return False
        states = SyncStates(broker_id, mastership.set_epoch, mastership.members)
        ctx.replicas, ctx.ha_client_info = parts.replication, None
        ctx.has_enough_members = lambda: parts.replication.has_enough_members
        parts.replication.lead(states)
        self._steps.become("SYNC_MASTER", 0)
        self._steps.start_services()
        self.elections_won += 1
        self._entered(mastership)
        log.warning(
            "This broker is the master of %s in epoch %d, from offset %d on",
            *(ctx.config.broker_name, mastership.epoch, store.max_offset_physical),
        )
        return True

    async def to_slave(self, broker_id: int, mastership: Mastership) -> None:
        """Copy the log of another broker."""
        parts, ctx = self._parts, self._parts.ctx
        await self._leave()
        self._steps.become("SLAVE", broker_id)
        if ctx.config.all_ack_in_sync_state_set:
            ctx.store.gate.close()
        self.follower = Follower(
            ctx,
            parts.requests.pulls.wake,
            self._truncate,
            broker_id,
            mastership.master_addr,
            parts.tls,
            parts.hooks,
        )
        parts.registration.master_found = self.follower.found_master
        ctx.ha_client_info = self.follower.runtime_info
        self.follower.start()
        self._entered(mastership)
        log.warning(
            "This broker is a slave of %s, the master of epoch %d",
            *(mastership.master_addr, mastership.epoch),
        )

    def update(self, mastership: Mastership) -> None:
        """Take a newer sync-state set of the same epoch."""
        self.current = mastership
        replication = self._parts.replication
        if replication.states is not None:
            replication.states.adopt(mastership.set_epoch, mastership.members)
            replication.changed()

    def settle(self, set_epoch: int, asked_ms: int) -> None:
        """Take the set that the controllers had when they were asked, also an unchanged one."""
        replication = self._parts.replication
        if replication.states is not None and replication.states.settle(set_epoch, asked_ms):
            replication.changed()

    async def stop(self) -> None:
        """End the services of the role; the port for slaves stays open."""
        await self._steps.end_services()
        if self.follower is not None:
            await self.follower.stop()

    # -- steps --

    async def _leave(self) -> None:
        """End the present role; afterwards nothing writes to the log."""
        parts, ctx = self._parts, self._parts.ctx
        self._steps.end_sends()
        self._steps.become("SLAVE", ctx.config.broker_id)
        parts.replication.resign()
        ctx.replicas = None
        ctx.has_enough_members = _always
        await self._steps.end_services()
        follower, self.follower = self.follower, None
        parts.registration.master_found = None
        if follower is not None:
            await follower.stop()
        self.current = None

    def _entered(self, mastership: Mastership) -> None:
        """Note the role, and register it at the name servers."""
        self.current = mastership
        self._steps.register(mastership.epoch)

    async def _truncate(self, offset: int, confirm_offset: int) -> None:
        await truncate(self._parts.ctx, self._parts.saver, offset, confirm_offset)


def _has_epoch(ctx: BrokerContext, epoch: int) -> bool:
    """Begin an epoch at the end of the log, unless this broker began it before its restart."""
    store, epochs = ctx.store, ctx.store.epochs
    if epochs.cache.last_epoch == epoch:
        return True
    # A log without epochs is the beginning of the first one: slaves copy it from there.
    is_first = not len(epochs.cache)
    start = store.min_offset_physical if is_first else store.max_offset_physical
    return epochs.begin(epoch, start)


def _always() -> bool:
    return True

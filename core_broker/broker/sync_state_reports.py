"""Reports of a master to the controllers: the brokers that have all acknowledged messages (1001).

A report is due when a slave has joined or is lost, and is repeated until the controllers have the
set. A report without an answer may have been accepted, so its members count meanwhile
(ha/sync_states.py).
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from core_broker.broker.controllers import Controllers
from core_broker.broker.role_changes import RoleChanges
from core_broker.errors import GantryError
from core_broker.ha.master import monotonic_ms
from core_broker.ha.switch_replication import SwitchReplication
from core_broker.ha.sync_states import SyncStates
from core_broker.processors.context import BrokerContext
from core_broker.remoting.bodies import decode_body, encode_body
from core_broker.remoting.bodies.replicas import SyncStateSet
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.headers.controller import AlterSyncStateSetRequestHeader

#: Pause after a report that was not accepted, seconds.
RETRY_S = 0.5
#: Refusals that say that the report has not been accepted, and never will be.
REFUSALS = frozenset(
    {
        ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH,
        ResponseCode.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH,
        ResponseCode.CONTROLLER_INVALID_MASTER,
        ResponseCode.CONTROLLER_INVALID_REPLICAS,
        ResponseCode.CONTROLLER_BROKER_NOT_ALIVE,
        ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED,
    }
)

log = logging.getLogger(__name__)


class SyncStateReports:
    """Reports the set of this master. `ask` asks the controllers for master and set at once."""

    def __init__(
        self,
        ctx: BrokerContext,
        controllers: Controllers,
        roles: RoleChanges,
        replication: SwitchReplication,
        ask: Callable[[], None],
    ) -> None:
        self._ctx = ctx
        self._controllers = controllers
        self._roles = roles
        self._replication = replication
        self._ask = ask
        self._due = asyncio.Event()
        replication.members_changed = self._due.set

    async def run(self) -> None:
        """Report until cancelled."""
        while True:
            self._due.clear()
            states, current = self._replication.states, self._roles.current
            if states is not None and current is not None and states.must_report:
                if not await self._report(states, current.epoch):
                    await asyncio.sleep(RETRY_S)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(self._ctx.config.check_sync_state_set_period / 1000):
                    await self._due.wait()

    async def _report(self, states: SyncStates, master_epoch: int) -> bool:
        """Send one report; return whether it was accepted."""
        wanted = states.begin_report()
        header = AlterSyncStateSetRequestHeader(
            broker_name=self._ctx.config.broker_name,
            master_broker_id=states.own_id,
            master_epoch=master_epoch,
        )
        body = SyncStateSet(sync_state_set=sorted(wanted), sync_state_set_epoch=states.epoch)
        try:
            answer = await self._controllers.ask(
                RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, header, encode_body(body)
            )
            is_accepted = answer.code == ResponseCode.SUCCESS
            changed = decode_body(SyncStateSet, answer.body) if is_accepted else None
        except GantryError as error:
            log.warning("the sync-state set was not reported: %s", error)
            states.unknown(monotonic_ms())
            return False
        if changed is not None:
            states.adopt(changed.sync_state_set_epoch, frozenset(changed.sync_state_set))
            log.info("the sync-state set is %s", sorted(states.members))
            self._replication.changed()
            return True
        log.warning("the sync-state set %s is refused: %s", sorted(wanted), answer.remark)
        if answer.code in REFUSALS:
            states.refused()
        else:
            states.unknown(monotonic_ms())
        self._replication.changed()
        self._ask()
        return False

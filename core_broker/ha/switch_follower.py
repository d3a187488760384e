"""A broker's part as a slave of an elected master: copies its log and its tables.

The controllers name the master. Its HA address comes from the master itself (code 906), which
RocketMQ's slaves learn from the name server later, with their next registration.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from core_broker.errors import GantryError
from core_broker.ha.faults import ReplicationRefused
from core_broker.ha.slave import Slave
from core_broker.ha.status import SlaveState
from core_broker.ha.switch_client import SwitchClient, TruncateStore
from core_broker.processors.context import BrokerContext
from core_broker.remoting.client import RpcHook
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers.controller import ExchangeHAInfoResponseHeader
from core_broker.remoting.tls_client import ClientTls

#: Interval of questions to a master whose log is not copied now, seconds.
ASK_S = 0.5
#: Timeout of a question, ms.
ASK_TIMEOUT_MS = 1_000

log = logging.getLogger(__name__)


class Follower(Slave):
    """The tasks of a slave of one master; a role change makes another one."""

    def __init__(
        self,
        ctx: BrokerContext,
        wake_pulls: Callable[[], None],
        truncate: TruncateStore,
        broker_id: int,
        master_addr: str,
        tls: ClientTls | None = None,
        rpc_hooks: Sequence[RpcHook] = (),
    ) -> None:
        self._truncate = truncate
        self._broker_id = broker_id
        super().__init__(ctx, wake_pulls, tls, rpc_hooks)
        self.master_addr = master_addr
        self._ha_addr = ""

    def found_master(self, ha_addr: str, master_addr: str) -> None:
        """Take the HA address of a registration, when the name server knows the same master."""
        if ha_addr and master_addr == self.master_addr:
            self._ha_addr = ha_addr

    async def stop(self) -> None:
        """Close the connections to the master; nothing is written to the log any more."""
        await super().stop()
        await self._switch.finish()

    def _make_client(self, wake_pulls: Callable[[], None]) -> SwitchClient:
        ctx = self._ctx
        self._switch = SwitchClient(
            ctx.store,
            self._broker_id,
            lambda: ctx.config,
            lambda: self._ha_addr,
            self._truncate,
            self._compare,
            wake_pulls,
            ctx.now_ms,
        )
        return self._switch

    @property
    def is_transferring(self) -> bool:
        """True while the log of the master is copied."""
        return self.status.state is SlaveState.TRANSFERRING

    def _source(self) -> str:
        # Tables of a master whose log differs would name messages that are truncated.
        return self.master_addr if self.is_transferring else ""

    async def _find_master(self) -> None:
        while True:
            if not self.is_transferring:
                await self._ask_ha_addr()
            await asyncio.sleep(ASK_S)

    async def _ask_ha_addr(self) -> None:
        command = RemotingCommand.request(RequestCode.EXCHANGE_BROKER_HA_INFO)
        try:
            answer = await self._client.invoke(self.master_addr, command, ASK_TIMEOUT_MS)
            if answer.code == ResponseCode.SUCCESS:
                found = answer.header(ExchangeHAInfoResponseHeader).master_ha_address
                self._ha_addr = found or self._ha_addr
        except GantryError as error:
            log.debug("the HA address of master %s is not known: %s", self.master_addr, error)

    def _refuse(self, refusal: ReplicationRefused) -> None:
        """The handshake alone compares the logs."""

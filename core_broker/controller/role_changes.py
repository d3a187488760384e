"""NOTIFY_BROKER_ROLE_CHANGED (1008): tells the brokers of a set about their new master.

One-way, as in RocketMQ: a broker that misses the notice asks within seconds (1004).
"""

import asyncio
import logging
from collections.abc import Iterable
from functools import partial

from core_broker.controller.model import BrokerSet
from core_broker.errors import ClientError, TransportError
from core_broker.remoting.bodies import encode_body
from core_broker.remoting.bodies.replicas import SyncStateSet
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers.controller import NotifyBrokerRoleChangedRequestHeader

#: Time to reach a broker, seconds.
NOTICE_TIMEOUT_S = 3.0
#: Notices on the way at once; further ones are left out.
NOTICES_MAX = 1_024

log = logging.getLogger(__name__)


class RoleChanges:
    """Sends notices in the background; a newer notice to a broker replaces the older one."""

    def __init__(self, client: RemotingClient) -> None:
        self._client = client
        self._sending: dict[tuple[str, int], asyncio.Task[None]] = {}
        #: Notices that did not reach their broker.
        self.failed = 0

    def tell(self, broker_set: BrokerSet, broker_ids: Iterable[int]) -> None:
        """Send the present master of a set to some of its brokers."""
        for broker_id in broker_ids:
            key = (broker_set.name, broker_id)
            address = broker_set.address(broker_id)
            if address is None or (key not in self._sending and self._is_full):
                self.failed += 1
                continue
            if older := self._sending.get(key):
                older.cancel()
            task = asyncio.get_running_loop().create_task(self._send(address, broker_set))
            self._sending[key] = task
            task.add_done_callback(partial(self._done, key))

    async def close(self) -> None:
        """Cancel what is on the way, and close the connections."""
        tasks = list(self._sending.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._client.close()

    @property
    def _is_full(self) -> bool:
        return len(self._sending) >= NOTICES_MAX

    def _done(self, key: tuple[str, int], task: "asyncio.Task[None]") -> None:
        if self._sending.get(key) is task:
            del self._sending[key]

    async def _send(self, address: str, broker_set: BrokerSet) -> None:
        try:
            async with asyncio.timeout(NOTICE_TIMEOUT_S):
                await self._client.oneway(address, notice_of(broker_set))
        except (TransportError, ClientError, TimeoutError) as error:
            self.failed += 1
            log.warning("the new master of %s was not told: %s", broker_set.name, error)


def notice_of(broker_set: BrokerSet) -> RemotingCommand:
    """Return the request 1008 with the present master of a set."""
    header = NotifyBrokerRoleChangedRequestHeader(
        master_address=broker_set.master_address,
        master_epoch=broker_set.master_epoch,
        sync_state_set_epoch=broker_set.sync_state_set_epoch,
        master_broker_id=broker_set.master_id,
    )
    body = SyncStateSet(
        sync_state_set=list(broker_set.sync_state_set),
        sync_state_set_epoch=broker_set.sync_state_set_epoch,
    )
    return RemotingCommand.request(
        RequestCode.NOTIFY_BROKER_ROLE_CHANGED, header, encode_body(body)
    )

"""Gantry's private request codes: lists of a broker in one request, and kicks of a client."""

from collections.abc import Mapping
from typing import Final

from core_broker.client.admin.base import AdminBase
from core_broker.remoting.bodies.inventory import (
    CODES_SEPARATOR,
    GANTRY_CODES_KEY,
    GANTRY_UNMEASURED_KEY,
    ClientInventoryBody,
    GroupInventoryBody,
    KickedClientBody,
    TopicInventoryBody,
)
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.headers import KickClientRequestHeader

#: Timeout, ms: a broker with many topics needs seconds for the first snapshot.
INVENTORY_TIMEOUT_MS: Final = 10_000


class InventoryAdmin(AdminBase):
    """Requests for brokers with the code in `runtime_info`; see `offered_codes`."""

    async def topic_inventory(self, addr: str) -> TopicInventoryBody:
        """All topics of a broker: queues' offsets, rates, last write, groups with their lag."""
        return await self._ask_table(
            TopicInventoryBody,
            addr,
            RequestCode.GET_TOPIC_INVENTORY,
            timeout_ms=INVENTORY_TIMEOUT_MS,
        )

    async def group_inventory(self, addr: str) -> GroupInventoryBody:
        """All groups of a broker: lag, lag time, rate, clients, dead letters."""
        return await self._ask_table(
            GroupInventoryBody,
            addr,
            RequestCode.GET_GROUP_INVENTORY,
            timeout_ms=INVENTORY_TIMEOUT_MS,
        )

    async def all_clients(self, addr: str) -> ClientInventoryBody:
        """Every connected client of a broker with groups and last heartbeat."""
        return await self._ask_body(ClientInventoryBody, addr, RequestCode.GET_ALL_CLIENTS)

    async def kick_client(
        self, addr: str, client_id: str, reason: str, group: str | None = None
    ) -> KickedClientBody:
        """Close the client's connections to a broker, or only those that consume in the group."""
        header = KickClientRequestHeader(client_id=client_id, reason=reason, group=group)
        return await self._ask_body(KickedClientBody, addr, RequestCode.KICK_CLIENT, header)


def offered_codes(runtime_info: Mapping[str, str]) -> frozenset[int]:
    """Gantry's private codes in a broker's runtime information; empty for Apache RocketMQ."""
    words = runtime_info.get(GANTRY_CODES_KEY, "").split(CODES_SEPARATOR)
    return frozenset(int(word) for word in words if word.isascii() and word.isdecimal())


def unmeasured_keys(runtime_info: Mapping[str, str]) -> frozenset[str]:
    """The keys of runtime information that a Gantry broker sends without measuring them."""
    words = runtime_info.get(GANTRY_UNMEASURED_KEY, "").split(CODES_SEPARATOR)
    return frozenset(words) - {""}

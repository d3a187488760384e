"""A whole broker in one question: Gantry's own request codes, where a broker offers them."""

from collections.abc import Mapping
from typing import Final

from core_broker.client.admin.base import AdminBase
from core_broker.remoting.bodies.inventory import (
    CODES_SEPARATOR,
    GANTRY_CODES_KEY,
    ClientInventoryBody,
    GroupInventoryBody,
    TopicInventoryBody,
)
from core_broker.remoting.codes import RequestCode

#: A broker with very many topics takes seconds for its first picture of them.
INVENTORY_TIMEOUT_MS: Final = 10_000


class InventoryAdmin(AdminBase):
    """Ask these only a broker whose `runtime_info` names the code, see `offered_codes`."""

    async def topic_inventory(self, addr: str) -> TopicInventoryBody:
        """All topics of a broker: queues' offsets, rates, last write, groups with their lag."""
        return await self._ask_body(
            TopicInventoryBody,
            addr,
            RequestCode.GET_TOPIC_INVENTORY,
            timeout_ms=INVENTORY_TIMEOUT_MS,
        )

    async def group_inventory(self, addr: str) -> GroupInventoryBody:
        """All groups of a broker: lag, since when, rate, clients, dead letters."""
        return await self._ask_body(
            GroupInventoryBody,
            addr,
            RequestCode.GET_GROUP_INVENTORY,
            timeout_ms=INVENTORY_TIMEOUT_MS,
        )

    async def all_clients(self, addr: str) -> ClientInventoryBody:
        """Every connected client of a broker with its groups and its last heartbeat."""
        return await self._ask_body(ClientInventoryBody, addr, RequestCode.GET_ALL_CLIENTS)


def offered_codes(runtime_info: Mapping[str, str]) -> frozenset[int]:
    """Gantry's own codes that a broker announces; none for RocketMQ's."""
    words = runtime_info.get(GANTRY_CODES_KEY, "").split(CODES_SEPARATOR)
    return frozenset(int(word) for word in words if word.isascii() and word.isdecimal())

"""A whole broker in one question: Gantry's own request codes, where a broker offers them."""

from collections.abc import Mapping
from typing import Final

from core_broker.client.admin.base import AdminBase
from core_broker.remoting.bodies.figures import (
    CODES_SEPARATOR,
    GANTRY_CODES_KEY,
    ClientFiguresBody,
    GroupFiguresBody,
    TopicFiguresBody,
)
from core_broker.remoting.codes import RequestCode

#: A broker with very many topics takes seconds for its first picture of them.
FIGURES_TIMEOUT_MS: Final = 10_000


class FiguresAdmin(AdminBase):
    """Ask these only a broker whose `runtime_info` names the code, see `offered_codes`."""

    async def topic_figures(self, addr: str) -> TopicFiguresBody:
        """All topics of a broker: queues' offsets, rates, last write, groups with their lag."""
        return await self._ask_body(
            TopicFiguresBody,
            addr,
            RequestCode.GET_ALL_TOPIC_FIGURES,
            timeout_ms=FIGURES_TIMEOUT_MS,
        )

    async def group_figures(self, addr: str) -> GroupFiguresBody:
        """All groups of a broker: lag, since when, rate, clients, dead letters."""
        return await self._ask_body(
            GroupFiguresBody,
            addr,
            RequestCode.GET_ALL_GROUP_FIGURES,
            timeout_ms=FIGURES_TIMEOUT_MS,
        )

    async def all_clients(self, addr: str) -> ClientFiguresBody:
        """Every connected client of a broker with its groups and its last heartbeat."""
        return await self._ask_body(ClientFiguresBody, addr, RequestCode.GET_ALL_CLIENTS)


def offered_codes(runtime_info: Mapping[str, str]) -> frozenset[int]:
    """Gantry's own codes that a broker announces; none for RocketMQ's."""
    words = runtime_info.get(GANTRY_CODES_KEY, "").split(CODES_SEPARATOR)
    return frozenset(int(word) for word in words if word.isascii() and word.isdecimal())

"""Decides which peers may connect: the port of a member has neither signatures nor passwords.

A list of addresses and CIDR blocks decides; without a list, the addresses of the members do. Names
of members are resolved again when an unknown peer appears, but not more often than the interval. A
name that cannot be resolved keeps its addresses: a failure of DNS must not split the members.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable, Sequence

from core_broker.auth.acl2.source_addresses import Peer, SourceAddresses, peer_address

#: Minimum time between two resolutions of the members' names, seconds.
RESOLUTION_INTERVAL_S = 5.0
#: Maximum duration of one resolution, seconds.
RESOLUTION_TIMEOUT_S = 3.0

log = logging.getLogger(__name__)


class Admission:
    """Allows peers by address. Event loop only; raises ValueError for an invalid list."""

    def __init__(
        self,
        allowed: Sequence[str],
        hosts: Callable[[], Iterable[str]],
        source: str = "the members",
    ) -> None:
        """`source` names the list of the hosts in log lines, for example a setting."""
        self._listed = SourceAddresses(allowed) if allowed else None
        self._hosts = hosts
        self._source = source
        #: The addresses of a name, by its last resolution that succeeded.
        self._resolved: dict[str, set[Peer]] = {}
        self._next_resolution_s = 0.0

    async def is_allowed(self, host: str) -> bool:
        """Whether a peer with this address may connect."""
        if not self.knows(host) and self._listed is None:
            await self.resolve()
        return self.knows(host)

    def knows(self, host: str) -> bool:
        """Whether a peer may connect, as far as names are resolved."""
        peer = peer_address(host)
        if self._listed is not None:
            return self._listed.has(peer)
        return peer in self._literal() or any(peer in each for each in self._resolved.values())

    def _literal(self) -> set[Peer | None]:
        return {peer_address(host) for host in self._hosts()} - {None}

    async def resolve(self) -> None:
        """Resolve the names of members, unless that was done a moment ago."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._next_resolution_s:
            return
        self._next_resolution_s = loop.time() + RESOLUTION_INTERVAL_S
        names = [host for host in self._hosts() if peer_address(host) is None]
        for left in self._resolved.keys() - set(names):
            del self._resolved[left]
        for name in names:
            try:
                async with asyncio.timeout(RESOLUTION_TIMEOUT_S):
                    found = await loop.getaddrinfo(name, None, type=socket.SOCK_STREAM)
            except (OSError, TimeoutError) as error:
                log.warning("host %s of %s has no address: %s", name, self._source, error)
                continue
            peers = {peer for each in found if (peer := peer_address(str(each[4][0])))}
            self._resolved[name] = peers

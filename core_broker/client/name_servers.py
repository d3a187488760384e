"""Requests to the name servers of a cluster, with fail-over.

Compatible with the address list of RocketMQ's NAMESRV_ADDR: ``host:port`` joined by ``;`` (commas
are accepted too), or ``http://host:port/path`` of a web server with an address list.
"""

import logging
import os
import random
from collections.abc import Callable
from time import monotonic

from core_broker.client.addr_lookup import LOOKUP_INTERVAL_S, look_up, lookup_url, without_scheme
from core_broker.client.answers import checked
from core_broker.client.deadline import Deadline
from core_broker.errors import ClientError, GantryError, RequestRefused, TransportError
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.command import RemotingCommand

log = logging.getLogger(__name__)


def addrs_or_environment(text: str) -> str:
    """The given addresses, or the value of the environment variable NAMESRV_ADDR, as in Java."""
    return text or os.environ.get("NAMESRV_ADDR", "")


def parse_addrs(text: str) -> list[str]:
    """Split an address list; raises ClientError for an empty list or a malformed address."""
    parts = text.replace(",", ";").split(";")
    addrs = list(dict.fromkeys(without_scheme(addr.strip()) for addr in parts))
    addrs = [addr for addr in addrs if addr]
    if not addrs:
        raise ClientError("The name server address is missing; set NAMESRV_ADDR=host:port.")
    for addr in addrs:
        host, _, port = addr.rpartition(":")
        if not (host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise ClientError(f"The name server address {addr!r} is not of the form host:port.")
    return addrs


class NameServers:
    """Sends requests to one name server, and fails over to the next after a transport error."""

    def __init__(self, remoting: RemotingClient, addrs: str) -> None:
        addrs = addrs_or_environment(addrs)
        self._url = lookup_url(addrs)
        self._looked_up_s = -LOOKUP_INTERVAL_S
        self.addrs = [] if self._url else parse_addrs(addrs)
        self._remoting = remoting
        # Clients start at random servers, to spread the load.
        self._current = random.randrange(len(self.addrs)) if self.addrs else 0

    async def ask(self, make: Callable[[], RemotingCommand], timeout_ms: int) -> RemotingCommand:
        """Send a request to the name servers in turn until one answers, each within an equal share
        of the timeout. Raises RequestRefused for a refusal, without trying the next server."""
        deadline = Deadline(timeout_ms)
        await self._look_up()
        failure: TransportError | None = None
        count, first = len(self.addrs), self._current % len(self.addrs)
        for attempt in range(count):
            index = (first + attempt) % count
            addr = self.addrs[index]
            share_ms = max(deadline.left_ms() // (count - attempt), 1)
            try:
                answer = await self._remoting.invoke(addr, make(), share_ms)
            except TransportError as error:
                failure = error
                continue
            self._current = index
            return checked(answer, addr)
        assert failure is not None
        raise failure

    async def ask_all(
        self, make: Callable[[], RemotingCommand], timeout_ms: int
    ) -> list[RemotingCommand]:
        """Send a request to every name server, because name servers do not replicate. The first
        failure is raised after all servers were tried."""
        await self._look_up()
        answers: list[RemotingCommand] = []
        failure: TransportError | RequestRefused | None = None
        for addr in self.addrs:
            try:
                answers.append(checked(await self._remoting.invoke(addr, make(), timeout_ms), addr))
            except (TransportError, RequestRefused) as error:
                failure = failure or error
        if failure:
            raise failure
        return answers

    async def _look_up(self) -> None:
        """Renew the address list every 2 minutes; the old list stays while the web server is
        unreachable."""
        if self._url is None or monotonic() - self._looked_up_s < LOOKUP_INTERVAL_S:
            return
        try:
            self.addrs = parse_addrs(await look_up(self._url))
        except GantryError as error:
            if not self.addrs:
                raise
            log.warning("The list of name servers was not renewed: %s", error)
        self._looked_up_s = monotonic()

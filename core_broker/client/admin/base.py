"""Requests of an admin client: one request, one timeout, one answer or a typed error."""

import warnings
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self, TypeVar

from core_broker.client.admin.tables import DecodedTables
from core_broker.client.answers import checked
from core_broker.client.name_servers import NameServers
from core_broker.remoting.bodies import decode_body
from core_broker.remoting.client import RemotingClient, RpcHook
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.ext_fields import Header
from core_broker.remoting.tls_client import ClientTls

T = TypeVar("T")

TIMEOUT_MS_DEFAULT: Final = 3000
#: Timeout of requests relayed by a broker to a consumer; the broker waits 10 s for the consumer.
RELAYED_TIMEOUT_MS: Final = 12_000


class AdminBase:
    """The connections of an admin client; the request methods are in the subclasses, by noun.

    Without a name server address (None) only requests with a broker address work. Every method
    raises TransportError when a peer is unreachable or does not answer, and RequestRefused for an
    answer with a code other than success.

    With ``shares_tables``, complete tables of topics, groups and access control lists are the same
    objects while a broker's answer stays the same: the caller must not change them.
    """

    def __init__(
        self,
        namesrv_addr: str | None,
        *,
        timeout_ms: int = TIMEOUT_MS_DEFAULT,
        rpc_hooks: Sequence[RpcHook] = (),
        tls: ClientTls | None = None,
        shares_tables: bool = False,
    ) -> None:
        self.timeout_ms = timeout_ms
        self._tables = DecodedTables() if shares_tables else None
        self._remoting = RemotingClient(
            name="admin", rpc_hooks=rpc_hooks, tls=tls or ClientTls.from_environment()
        )
        self._configured = (
            None if namesrv_addr is None else NameServers(self._remoting, namesrv_addr)
        )
        self._used = False
        self._closed = False

    @property
    def namesrv_addrs(self) -> list[str]:
        return list(self._name_servers.addrs)

    @property
    def _name_servers(self) -> NameServers:
        """Raises ClientError without a name server address."""
        return self._configured or NameServers(self._remoting, "")

    async def close(self) -> None:
        """Close all connections; may be called twice."""
        self._closed = True
        await self._remoting.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __del__(self) -> None:
        if getattr(self, "_used", False) and not self._closed:
            warnings.warn(f"{self!r} was dropped without close()", ResourceWarning, stacklevel=2)

    async def _ask(
        self,
        addr: str,
        code: RequestCode,
        header: Header | dict[str, str] | None = None,
        body: bytes = b"",
        *,
        timeout_ms: int | None = None,
    ) -> RemotingCommand:
        return checked(await self._invoke(addr, code, header, body, timeout_ms=timeout_ms), addr)

    async def _invoke(
        self,
        addr: str,
        code: RequestCode,
        header: Header | dict[str, str] | None = None,
        body: bytes = b"",
        *,
        timeout_ms: int | None = None,
    ) -> RemotingCommand:
        """Like ``_ask``, without raising for a refusal: the caller reads the response code."""
        self._used = True
        command = RemotingCommand.request(code, header, body)
        return await self._remoting.invoke(addr, command, timeout_ms or self.timeout_ms)

    async def _ask_body(
        self,
        kind: type[T],
        addr: str,
        code: RequestCode,
        header: Header | dict[str, str] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> T:
        answer = await self._ask(addr, code, header, timeout_ms=timeout_ms)
        return decode_body(kind, answer.body)

    async def _ask_table(
        self, kind: type[T], addr: str, code: RequestCode, *, timeout_ms: int | None = None
    ) -> T:
        """Like ``_ask_body``, for a complete table of a broker."""
        answer = await self._ask(addr, code, timeout_ms=timeout_ms)
        return self._table(kind, addr, code, answer.body)

    def _table(self, kind: type[T], addr: str, code: RequestCode, body: bytes) -> T:
        """The table in the body of an answer without secrets. A code has one complete table."""
        if self._tables is None:
            return decode_body(kind, body)
        return self._tables.decoded(kind, addr, code, body)

    async def _ask_name_server(
        self, code: RequestCode, header: Header | None = None
    ) -> RemotingCommand:
        self._used = True
        return await self._name_servers.ask(
            lambda: RemotingCommand.request(code, header), self.timeout_ms
        )

    async def _ask_all_name_servers(
        self, code: RequestCode, header: Header | None = None, body: bytes = b""
    ) -> list[RemotingCommand]:
        """Send a change to every name server, because name servers do not replicate."""
        self._used = True
        return await self._name_servers.ask_all(
            lambda: RemotingCommand.request(code, header, body), self.timeout_ms
        )

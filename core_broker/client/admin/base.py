"""How an admin client asks: one question, one deadline, one answer or a typed error."""

import warnings
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self, TypeVar

from core_broker.client.name_servers import NameServers, checked
from core_broker.remoting.bodies import decode_body
from core_broker.remoting.client import RemotingClient, RpcHook
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.ext_fields import Header

T = TypeVar("T")

TIMEOUT_MS_DEFAULT: Final = 3000
#: For questions that a broker passes on to a consumer, which it gives 10 s itself.
RELAYED_TIMEOUT_MS: Final = 12_000


class AdminBase:
    """The connection of an admin client. The methods that ask are in its subclasses by noun.

    Without an address of a name server (None) it can still ask brokers at their own addresses.
    Every method raises TransportError when a peer cannot be reached or is silent, and
    RequestRefused when it answers with a code other than success.
    """

    def __init__(
        self,
        namesrv_addr: str | None,
        *,
        timeout_ms: int = TIMEOUT_MS_DEFAULT,
        rpc_hooks: Sequence[RpcHook] = (),
    ) -> None:
        self.timeout_ms = timeout_ms
        self._remoting = RemotingClient(name="admin", rpc_hooks=rpc_hooks)
        self._known = None if namesrv_addr is None else NameServers(self._remoting, namesrv_addr)
        self._used = False
        self._closed = False

    @property
    def namesrv_addrs(self) -> list[str]:
        return list(self._name_servers.addrs)

    @property
    def _name_servers(self) -> NameServers:
        """Raises ClientError when no address was given."""
        return self._known or NameServers(self._remoting, "")

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
        """Like ``_ask``, for codes whose refusals have a meaning of their own."""
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

    async def _ask_name_server(
        self, code: RequestCode, header: Header | None = None
    ) -> RemotingCommand:
        self._used = True
        return await self._name_servers.ask(
            lambda: RemotingCommand.request(code, header), self.timeout_ms
        )

    async def _tell_name_servers(
        self, code: RequestCode, header: Header | None = None, body: bytes = b""
    ) -> list[RemotingCommand]:
        """Name servers do not replicate: each one is told."""
        self._used = True
        return await self._name_servers.ask_all(
            lambda: RemotingCommand.request(code, header, body), self.timeout_ms
        )

"""Asking a name server over its socket."""

from core_broker.remoting.client import RemotingClient
from core_broker.remoting.command import RemotingCommand


class Asker:
    """Asks one name server, over one connection."""

    def __init__(self, addr: str) -> None:
        self.addr = addr
        self.client = RemotingClient(name="test")

    async def ask(
        self, code: int, fields: dict[str, str] | None = None, body: bytes = b"", **header: int
    ) -> RemotingCommand:
        """Send a request; `header` sets version or serialize_type."""
        request = RemotingCommand.request(code, fields or {}, body)
        for name, value in header.items():
            setattr(request, name, value)
        return await self.client.invoke(self.addr, request, 10_000)

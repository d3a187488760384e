"""A client of a name server, over a real socket."""

from core_broker.remoting.client import RemotingClient
from core_broker.remoting.command import RemotingCommand


class NamesrvClient:
    """Sends requests to one name server, over one connection."""

    def __init__(self, addr: str) -> None:
        self.addr = addr
        self.remoting = RemotingClient(name="test")

    async def request(
        self, code: int, fields: dict[str, str] | None = None, body: bytes = b"", **header: int
    ) -> RemotingCommand:
        """Send a request and return the response; `header` sets version or serialize_type."""
        request = RemotingCommand.request(code, fields or {}, body)
        for name, value in header.items():
            setattr(request, name, value)
        return await self.remoting.invoke(self.addr, request, 10_000)

"""Messages to and from the other members: one outgoing connection per member, and the own port."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from core_broker.raft.messages import AnyMessage, Message
from core_broker.raft_member.admission import Admission
from core_broker.raft_member.frames import Hello, encode_message
from core_broker.raft_member.inbound import Inbound
from core_broker.raft_member.outbound import PeerLink
from core_broker.raft_member.settings import MemberAddress, MemberSettings


class Transport:
    """Sends messages to members and delivers theirs. Event loop only.

    May lose, repeat and reorder messages, as the core allows; never delivers a message of another
    cluster, or one that another member sent or should get.
    """

    def __init__(
        self, settings: MemberSettings, deliver: Callable[[list[AnyMessage]], None]
    ) -> None:
        """Prepare; raises ValueError for an invalid `allowed_peers`."""
        #: The members by node id, this one included.
        self.addresses: Mapping[int, MemberAddress] = dict(settings.addresses)
        #: Messages to members without an address.
        self.unaddressed = 0
        self._settings = settings
        self._links: dict[int, PeerLink] = {}
        self._closing: set[asyncio.Task[None]] = set()
        admission = Admission(settings.allowed_peers, self._hosts)
        self._inbound = Inbound(self._own_hello, admission, deliver, settings.server_tls)

    async def start(self) -> int:
        """Listen and connect; return the own port. Raises OSError when it cannot listen."""
        own = self._settings.own_address
        port = await self._inbound.start(self._settings.bind_host or own.host, own.port)
        self._open_links()
        return port

    async def close(self) -> None:
        """Close all connections and the port; what waits is lost."""
        links = list(self._links.values())
        self._links.clear()
        await asyncio.gather(self._inbound.close(), *(link.close() for link in links))
        await asyncio.gather(*self._closing)

    def send(self, messages: Iterable[Message]) -> None:
        """Queue messages for their receivers."""
        for message in messages:
            link = self._links.get(message.target)
            if link is None:
                self.unaddressed += 1
            else:
                link.send(encode_message(message))

    def set_addresses(self, addresses: Mapping[int, MemberAddress]) -> None:
        """Take new addresses of members; connections to unchanged addresses stay."""
        self.addresses = dict(addresses)
        loop = asyncio.get_running_loop()
        for node_id, link in list(self._links.items()):
            if addresses.get(node_id) != link.address:
                del self._links[node_id]
                task = loop.create_task(link.close())
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)
        self._open_links()

    # -- observation --

    @property
    def connected(self) -> dict[int, bool]:
        """Whether the outgoing connection to each other member is open."""
        return {node_id: link.is_connected for node_id, link in self._links.items()}

    @property
    def dropped(self) -> dict[int, int]:
        """Messages to each other member that got lost without a connection or in a full queue."""
        return {node_id: link.counters["dropped"] for node_id, link in self._links.items()}

    @property
    def closings(self) -> Counter[str]:
        """Counters of the own port; see `Inbound.counters`."""
        return self._inbound.counters

    # -- parts --

    def _hosts(self) -> Iterable[str]:
        own_id = self._settings.node_id
        return [each.host for node_id, each in self.addresses.items() if node_id != own_id]

    def _own_hello(self, target: int) -> Hello | None:
        if target == self._settings.node_id or target not in self.addresses:
            return None
        return Hello(self._settings.cluster_id, self._settings.node_id, target)

    def _open_links(self) -> None:
        for node_id, address in self.addresses.items():
            hello = self._own_hello(node_id)
            if hello is not None and node_id not in self._links:
                self._links[node_id] = PeerLink(hello, address, self._settings.client_tls)

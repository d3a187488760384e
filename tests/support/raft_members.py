"""A group of running Raft members on real sockets, each connection through a link that can be cut.

`Group` runs all members in this process; `tests/support/raft_processes.py` has the same group as
processes. The state machine is the one of the simulation, a map with conditional writes; it also
remembers which commands took effect, so that a history can be checked.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from core_broker.raft.machine import NotLeader, ProposalsFull, ProposalUncertain
from core_broker.raft.membership import ChangeKind
from core_broker.raft.refusals import RaftRefused
from core_broker.raft_member import MemberAddress, MemberSettings, RaftMember
from core_broker.store.files import Files
from tests.support.eventually import eventually
from tests.support.raft_hosts import Command

HOST = "127.0.0.1"
CLUSTER = "test-cluster"
TICK_S = 0.05
#: Bound of a wait, seconds; a loaded machine may need several elections.
WAIT_S = 60.0


class Registers:
    """A map with conditional writes; `done` has the ids of all commands."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.done: list[int] = []

    def apply(self, command: bytes) -> bool:
        """Execute a command; return whether its condition held."""
        change = msgspec.json.decode(command, type=Command)
        self.done.append(change.id)
        if change.expected is not None and self.values.get(change.key, "") != change.expected:
            return False
        self.values[change.key] = change.value
        return True

    def snapshot(self) -> bytes:
        """Return the state."""
        return msgspec.json.encode((self.values, self.done))

    def restore(self, data: bytes) -> None:
        """Replace the state."""
        self.values, self.done = msgspec.json.decode(data, type=tuple[dict[str, str], list[int]])


class Link:
    """A TCP link in one direction of connection: cut, it closes what passes and accepts nothing."""

    def __init__(self) -> None:
        self.target: int | None = None
        self.is_cut = False
        self.port = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def open(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._accept, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Let nothing pass."""
        self.is_cut = True
        for writer in list(self._writers):
            writer.transport.abort()

    def mend(self) -> None:
        """Let everything pass again."""
        self.is_cut = False

    def close(self) -> None:
        """Stop."""
        self.cut()
        if self._server is not None:
            self._server.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        onward = None
        try:
            if self.is_cut or self.target is None:
                return
            back, onward = await asyncio.open_connection(HOST, self.target)
            self._writers.add(onward)
            done, pending = await asyncio.wait(
                [
                    asyncio.create_task(self._copy(reader, onward)),
                    asyncio.create_task(self._copy(back, writer)),
                ],
                return_when=asyncio.FIRST_COMPLETED,
            )
            for task in pending:
                task.cancel()
            await asyncio.gather(*done, *pending, return_exceptions=True)
        except OSError:
            pass
        finally:
            for each in (writer, onward):
                if each is not None:
                    self._writers.discard(each)
                    each.transport.abort()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()


class Links:
    """The links of a group, one per ordered pair of members."""

    def __init__(self, ids: Iterable[int]) -> None:
        self.ids = tuple(ids)
        self._links = {(a, b): Link() for a in self.ids for b in self.ids if a != b}

    async def open(self) -> None:
        """Open all links."""
        for link in self._links.values():
            await link.open()

    def close(self) -> None:
        """Close all links."""
        for link in self._links.values():
            link.close()

    def addresses(self, node_id: int) -> dict[int, MemberAddress]:
        """Return the addresses as one member must use them."""
        ports = {other: self._links[node_id, other].port for other in self.ids if other != node_id}
        return {
            other: MemberAddress(HOST, ports.get(other, 0), service(other)) for other in self.ids
        }

    def lead_to(self, node_id: int, port: int) -> None:
        """Let the links to a member end at its port."""
        for (_, target), link in self._links.items():
            if target == node_id:
                link.target = port

    def isolate(self, *node_ids: int) -> None:
        """Cut members off from all others, not from each other."""
        for (a, b), link in self._links.items():
            if (a in node_ids) != (b in node_ids):
                link.cut()

    def silence(self, source: int, target: int) -> None:
        """Cut one direction."""
        self._links[source, target].cut()

    def mend(self) -> None:
        """Mend all links."""
        for link in self._links.values():
            link.mend()


def service(node_id: int) -> str:
    """Return the address at which a member would serve clients."""
    return f"member-{node_id}:9878"


class Group:
    """Members in this process; leaving the block stops them."""

    def __init__(
        self,
        folder: Path,
        ids: Iterable[int] = (1, 2, 3),
        files: Mapping[int, Files] | None = None,
        **settings: Any,
    ) -> None:
        """`files` are the disks of some members, else the real disk."""
        self.links = Links(ids)
        self._files = files or {}
        self.members: dict[int, RaftMember] = {}
        self.machines: dict[int, Registers] = {}
        self._folder = folder
        self._settings = {"cluster_id": CLUSTER, "tick_s": TICK_S, **settings}
        self._number = 0

    async def __aenter__(self) -> Self:
        await self.links.open()
        for node_id in self.links.ids:
            await self.start(node_id)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.links.close()
        for member in self.members.values():
            await member.stop(hand_over=False)

    async def start(self, node_id: int, **settings: Any) -> RaftMember:
        """Start a member, for the first time or again, with an empty machine."""
        machine = Registers()
        member = RaftMember(
            MemberSettings(
                node_id=node_id,
                addresses=self.links.addresses(node_id),
                folder=self._folder / str(node_id),
                **{**self._settings, **settings},
            ),
            machine,
            self._files.get(node_id),
        )
        self.links.lead_to(node_id, await member.start())
        self.members[node_id], self.machines[node_id] = member, machine
        return member

    async def stop(self, node_id: int, *, hand_over: bool = False) -> None:
        """Stop a member."""
        await self.members.pop(node_id).stop(hand_over=hand_over)

    async def leader(self, *others: int) -> int:
        """Wait for a leader that a quorum confirms, apart from `others`; return its id."""
        found: list[int] = []

        async def confirmed() -> bool:
            for node_id, member in self.members.items():
                if node_id not in others and member.is_leader:
                    with contextlib.suppress(NotLeader):
                        await member.read_barrier()
                        found.append(node_id)
                        return True
            return False

        await eventually(confirmed, WAIT_S)
        return found[-1]

    async def write(self, node_id: int, key: str, value: str, expected: str | None = None) -> bool:
        """Propose a write at a member; return whether its condition held."""
        self._number += 1
        command = Command(self._number, key, value, expected)
        held: bool = await self.members[node_id].propose(msgspec.json.encode(command))
        return held

    async def commit(self, key: str, value: str, *others: int) -> None:
        """Write under whichever leader, apart from `others`; may write twice."""
        async with asyncio.timeout(WAIT_S):
            while True:
                leader = await self.leader(*others)
                with contextlib.suppress(NotLeader, ProposalUncertain):
                    await self.write(leader, key, value)
                    return

    async def change(self, kind: ChangeKind, node_id: int) -> None:
        """Change the membership under whichever leader."""

        async def is_changed() -> bool:
            member = self.members[await self.leader()]
            with contextlib.suppress(NotLeader, ProposalUncertain, RaftRefused):
                await member.change_membership(kind, node_id)
            after = member.membership
            return {
                ChangeKind.ADD_VOTER: node_id in after.voters,
                ChangeKind.ADD_LEARNER: node_id in after.learners,
                ChangeKind.REMOVE: node_id not in after.members,
            }[kind]

        await eventually(is_changed, WAIT_S)

    async def lead(self, node_id: int) -> None:
        """Transfer the leadership to a member."""

        async def leads() -> bool:
            leader = await self.leader()
            if leader != node_id:
                with contextlib.suppress(NotLeader, ProposalsFull, RaftRefused, TimeoutError):
                    await self.members[leader].transfer_leadership(node_id)
            return self.members[node_id].is_leader

        await eventually(leads, WAIT_S)

    async def agree(self) -> None:
        """Wait until all running members have the same state as the leader."""
        leader = await self.leader()
        wanted = self.members[leader].status().applied_index

        def are_equal() -> bool:
            return all(
                member.status().applied_index >= wanted
                and self.machines[node_id].values == self.machines[leader].values
                for node_id, member in self.members.items()
            )

        await eventually(are_equal, WAIT_S)

"""A group of Raft members as processes, with a small protocol for clients.

Run as a program, with a JSON object of `Program`, this file is one member. It prints its two ports
as a line of JSON, and answers clients: one JSON object per line in, one out. `Processes` starts
such members and connects them through links of this process (raft_members.py).
"""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from core_broker.raft.machine import NotLeader, ProposalsFull, ProposalUncertain
from core_broker.raft_member import MemberAddress, MemberSettings, RaftMember
from tests.support.cluster import ROOT
from tests.support.raft_hosts import Command
from tests.support.raft_members import CLUSTER, HOST, Links, Registers

#: Bound of a request of a client, seconds.
REQUEST_TIMEOUT_S = 10.0
#: Longest line: a status with the ids of all commands.
LINE_BYTES_MAX = 16 * 1024 * 1024
_FAILED = 3


class Program(msgspec.Struct):
    """Arguments of a member."""

    node_id: int
    folder: str
    ports: dict[int, int]
    tick_s: float
    snapshot_entries: int = 200


class Ports(msgspec.Struct):
    """The first line of a member."""

    members: int
    clients: int


class Question(msgspec.Struct, omit_defaults=True):
    """A request: a command to propose, a key to read, or, with neither, the state."""

    command: Command | None = None
    key: str | None = None


class Answer(msgspec.Struct, omit_defaults=True):
    """An answer; `error` is empty, "refused" without any effect, or "uncertain"."""

    error: str = ""
    held: bool = False
    value: str = ""
    is_leader: bool = False
    values: dict[str, str] = {}
    done: list[int] = []
    snapshots_installed: int = 0


class Service:
    """Answers the clients of one member."""

    def __init__(self, member: RaftMember, machine: Registers) -> None:
        self._member = member
        self._machine = machine

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one client until it leaves."""
        with contextlib.suppress(OSError):
            while line := await reader.readline():
                answer = await self._answer(msgspec.json.decode(line, type=Question))
                writer.write(msgspec.json.encode(answer) + b"\n")
                await writer.drain()
        writer.close()

    async def _answer(self, question: Question) -> Answer:
        member, machine = self._member, self._machine
        try:
            if question.command is not None:
                return Answer(held=await member.propose(msgspec.json.encode(question.command)))
            await member.read_barrier()
        except (NotLeader, ProposalsFull):
            return Answer("refused")
        except ProposalUncertain:
            return Answer("uncertain")
        if question.key is not None:
            return Answer(value=machine.values.get(question.key, ""))
        return Answer(
            is_leader=member.is_leader,
            values=machine.values,
            done=machine.done,
            snapshots_installed=member.status().events["snapshots_installed"],
        )


async def run(program: Program) -> int:
    """Be a member until a fault."""
    machine = Registers()
    addresses = {
        node_id: MemberAddress(HOST, port, str(node_id)) for node_id, port in program.ports.items()
    }
    settings = MemberSettings(
        cluster_id=CLUSTER,
        node_id=program.node_id,
        addresses=addresses,
        folder=Path(program.folder),
        tick_s=program.tick_s,
        snapshot_entries=program.snapshot_entries,
        kept_entries=program.snapshot_entries // 10,
    )
    member = RaftMember(settings, machine)
    port = await member.start()
    server = await asyncio.start_server(Service(member, machine).serve, HOST, 0)
    ports = Ports(port, server.sockets[0].getsockname()[1])
    sys.stdout.write(msgspec.json.encode(ports).decode() + "\n")
    sys.stdout.flush()
    sys.stderr.write(f"{await member.wait_failed()}\n")
    return _FAILED


class Processes:
    """Starts, asks and kills members; leaving the block kills all of them."""

    def __init__(self, folder: Path, tick_s: float, ids: tuple[int, ...] = (1, 2, 3)) -> None:
        self.links = Links(ids)
        self.running: dict[int, asyncio.subprocess.Process] = {}
        self._folder = folder
        self._tick_s = tick_s
        self._clients: dict[int, int] = {}

    async def __aenter__(self) -> Self:
        await self.links.open()
        await asyncio.gather(*(self.start(node_id) for node_id in self.links.ids))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for node_id in list(self.running):
            await self.kill(node_id)
        self.links.close()

    async def start(self, node_id: int) -> None:
        """Start a member, for the first time or again."""
        ports = {each: address.port for each, address in self.links.addresses(node_id).items()}
        folder = str(self._folder / str(node_id))
        argument = msgspec.json.encode(Program(node_id, folder, ports, self._tick_s)).decode()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.support.raft_processes", argument),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
        )
        self.running[node_id] = process
        assert process.stdout is not None
        found = msgspec.json.decode(await process.stdout.readline(), type=Ports)
        self._clients[node_id] = found.clients
        self.links.lead_to(node_id, found.members)

    async def kill(self, node_id: int) -> None:
        """End a member with SIGKILL; it must not have ended before."""
        process = self.running.pop(node_id)
        assert process.returncode is None, f"member {node_id} ended by itself"
        process.kill()
        await process.wait()

    def pause(self, node_id: int) -> None:
        """Stop a member's clock."""
        self.running[node_id].send_signal(signal.SIGSTOP)

    def resume(self, node_id: int) -> None:
        """Let a paused member go on."""
        self.running[node_id].send_signal(signal.SIGCONT)

    async def ask(self, node_id: int, question: Question) -> Answer:
        """Ask a member over a new connection; a lost answer is "uncertain"."""
        writer = None
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                reader, writer = await asyncio.open_connection(
                    HOST, self._clients[node_id], limit=LINE_BYTES_MAX
                )
                writer.write(msgspec.json.encode(question) + b"\n")
                line = await reader.readline()
            if line.endswith(b"\n"):
                return msgspec.json.decode(line, type=Answer)
        except ConnectionRefusedError:
            return Answer("refused")
        except OSError:
            pass
        finally:
            if writer is not None:
                writer.transport.abort()
        return Answer("uncertain")

    async def leader(self) -> int | None:
        """Return the member that leads and has proved it, if any."""
        for node_id in list(self.running):
            answer = await self.ask(node_id, Question())
            if not answer.error and answer.is_leader:
                return node_id
        return None


if __name__ == "__main__":
    # Not sys.exit: a thread of a hanging disk must not keep the process.
    os._exit(asyncio.run(run(msgspec.json.decode(sys.argv[1], type=Program))))

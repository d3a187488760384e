"""Attacks on a running cluster beside a canary; `python -m tests.crash.drill` prints the table.

`--tree` runs broker and name server of another source tree, for a comparison.
"""

import asyncio
import json
import resource
import socket
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import click

from core_broker.client import Credentials
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.frame_layout import FRAME_HEAD_BYTES, LENGTH_BYTES, unpack_frame_head
from tests.support.broker_requests import pull_header, send_header
from tests.support.canary import Canary, Sent, missing, worst_ms
from tests.support.cluster import ROOT, Cluster
from tests.support.hostile_bodies import Attack
from tests.support.hostile_requests import attacks
from tests.wire.hostile_frames import hostile_frames

#: Maximum time for the answers to an attack; some frames have none.
ANSWERS_S = 30.0
#: Time between two attacks, in which delayed effects show.
PAUSE_S = 0.15

#: Descriptors of the process, and of the broker, for other things than connections.
DESCRIPTORS_RESERVED = 1_500
STUCK_TOPIC = "Stuck"
STUCK_MESSAGES, STUCK_BODY_BYTES, STUCK_PULLS = 10, 200_000, 60


class Outcome(NamedTuple):
    """One attack: its period on the monotonic clock, answers by code, and holds of the loop."""

    attack: str
    begin_s: float
    end_s: float
    answers: dict[int, int]
    holds: dict[str, int]

    @property
    def cpu_holds(self) -> list[str]:
        """Steps that held the loop by computing."""
        return [step for step in self.holds if step.endswith(" cpu")]


async def run_attack(cluster: Cluster, attack: Attack) -> Outcome:
    """Send the frames, and wait until each has an answer, or the server closes the connection."""
    frames = attack.frames()
    addr = cluster.broker_addr if attack.server == "broker" else cluster.namesrv_addr
    before = holds(cluster, attack.server)
    begin_s = time.monotonic()
    answers = await exchange(addr, frames)
    await asyncio.sleep(PAUSE_S)
    after = await asyncio.to_thread(holds, cluster, attack.server)
    grown = {name: count - before.get(name, 0) for name, count in after.items()}
    return Outcome(
        f"{attack.server}: {attack.name}",
        begin_s,
        time.monotonic(),
        dict(answers),
        {name: count for name, count in grown.items() if count},
    )


async def exchange(
    addr: str, frames: list[bytes], source: str = "", answers_s: float = ANSWERS_S
) -> Counter[int]:
    """Send frames on a connection from the address `source`; return the answers' codes.

    Missing answers are waited for `answers_s`.
    """
    loop = asyncio.get_running_loop()
    answers: Counter[int] = Counter()
    received = bytearray()
    with await _connected(addr, source) as peer:
        sending = asyncio.create_task(_send_all(peer, frames))
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(answers_s):
                while sum(answers.values()) < len(frames):
                    data = await loop.sock_recv(peer, 1 << 20)
                    if not data:
                        break
                    received += data
                    answers.update(_codes(received))
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
    return answers


def _codes(received: bytearray) -> Iterator[int]:
    """Take the whole frames from the beginning; yield their response codes.

    Servers without limits answer with headers that FrameSplitter refuses.
    """
    while len(received) >= FRAME_HEAD_BYTES:
        length, _ = unpack_frame_head(received)
        if len(received) < LENGTH_BYTES + length:
            return
        yield RemotingCommand.decode(bytes(received[: LENGTH_BYTES + length])).code
        del received[: LENGTH_BYTES + length]


async def _send_all(peer: socket.socket, frames: list[bytes]) -> None:
    with suppress(ConnectionError):
        await asyncio.get_running_loop().sock_sendall(peer, b"".join(frames))


def varz(cluster: Cluster, server: str) -> dict[str, Any]:
    """/varz of a server."""
    url = f"http://127.0.0.1:{cluster.http_ports[server]}/varz"
    with urllib.request.urlopen(url, timeout=60) as answer:
        return dict(json.load(answer))


def holds(cluster: Cluster, server: str) -> dict[str, int]:
    """The watchdog's counts by step and cause; empty for a server without a watchdog."""
    return {
        f"{hold['step']} {hold['request_code']} {hold['cause']}".replace("  ", " "): hold["count"]
        for hold in varz(cluster, server).get("event_loop_holds", [])
    }


async def drill(cluster: Cluster, chosen: Iterable[Attack]) -> tuple[list[Outcome], list[Sent]]:
    """Run attacks one after the other beside a canary."""
    async with beside_canary(cluster) as messages:
        outcomes = [await run_attack(cluster, attack) for attack in chosen]
    return outcomes, messages


@asynccontextmanager
async def beside_canary(
    cluster: Cluster, credentials: Credentials | None = None
) -> AsyncIterator[list[Sent]]:
    """Run a canary during the block; the list has its messages behind the block."""
    canary = await asyncio.to_thread(Canary, cluster.broker_addr, credentials)
    messages: list[Sent] = []
    try:
        yield messages
        messages += await asyncio.to_thread(canary.stop)
    except BaseException:
        canary.kill()
        raise


@contextmanager
def timed(name: str, outcomes: list[Outcome]) -> Iterator[None]:
    """Add the block to the outcomes, as an attack without answers and holds."""
    begin_s = time.monotonic()
    yield
    outcomes.append(Outcome(name, begin_s, time.monotonic(), {}, {}))


async def mutated_frames(cluster: Cluster, count: int, seed: int) -> None:
    """Send generated frames to both servers in turn, with a new connection for each frame."""
    addrs = (cluster.broker_addr, cluster.namesrv_addr)
    for number, frame in enumerate(islice(hostile_frames(seed), count)):
        with await _connected(addrs[number % 2]) as peer:
            loop = asyncio.get_running_loop()
            with suppress(ConnectionError, TimeoutError):
                await loop.sock_sendall(peer, frame)
                peer.shutdown(socket.SHUT_WR)
                async with asyncio.timeout(ANSWERS_S):
                    while await loop.sock_recv(peer, 65_536):
                        pass


async def idle_connections(cluster: Cluster, count: int) -> int:
    """Open connections, as many as descriptors allow, and close them; returns their number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = min(count, hard - DESCRIPTORS_RESERVED)
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(count):
            stack.enter_context(await _connected(cluster.broker_addr))
        await asyncio.sleep(PAUSE_S)
    return count


async def never_reading_peers(cluster: Cluster, count: int) -> None:
    """Pull the messages of STUCK_TOPIC on many connections that never read an answer."""
    client = RemotingClient(name="filler")
    for _ in range(STUCK_MESSAGES):
        request = RemotingCommand.request(310, send_header(STUCK_TOPIC), bytes(STUCK_BODY_BYTES))
        await client.invoke(cluster.broker_addr, request, ANSWERS_S * 1000)
    await client.close()
    pull = RemotingCommand.request(11, pull_header(STUCK_TOPIC)).encode()
    with ExitStack() as stack:
        for _ in range(count):
            peer = stack.enter_context(await _connected(cluster.broker_addr))
            with suppress(ConnectionError, BlockingIOError):
                peer.send(pull * STUCK_PULLS)
        await asyncio.sleep(1)


async def _connected(addr: str, source: str = "") -> socket.socket:
    host, _, port = addr.rpartition(":")
    peer = socket.socket()
    if source:
        peer.bind((source, 0))
    peer.setblocking(False)
    await asyncio.get_running_loop().sock_connect(peer, (host, int(port)))
    return peer


def table(outcomes: Iterable[Outcome], messages: list[Sent]) -> str:
    """A line per attack: the canary's worst latency, the holds, and the answers."""
    lines = [f"{'canary ms':>9}  {'attack':60}  answers; holds over 50 ms"]
    for each in outcomes:
        worst = worst_ms(messages, each.begin_s, each.end_s)
        lines.append(f"{worst:9.0f}  {each.attack:60}  {each.answers}; {each.holds or '—'}")
    return "\n".join(lines)


@click.command()
@click.option("--tree", type=click.Path(path_type=Path), default=ROOT, help="source tree to run")
@click.option("--only", multiple=True, help="part of the names of the attacks to run")
def main(tree: Path, only: tuple[str, ...]) -> None:
    """Attack a broker and a name server, and print the canary's worst latency per attack."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster(Path(folder), root=tree) as cluster,
    ):
        chosen = [
            attack
            for attack in attacks()
            if not only or any(part in f"{attack.server}: {attack.name}" for part in only)
        ]
        outcomes, messages = asyncio.run(drill(cluster, chosen))
        click.echo(table(outcomes, messages))
        lost = asyncio.run(missing(cluster.broker_addr, messages))
        refused = sum(each.code != 0 for each in messages)
        click.echo(f"{len(messages)} canary messages, {refused} refused, {len(lost)} lost")


if __name__ == "__main__":
    main()

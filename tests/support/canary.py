"""A canary: a process that sends 50 messages per second to a broker and records the latencies.

A message is due every 20 ms, whatever the broker does. The latency of a message counts from the due
time: a broker that stops for a second delays fifty messages. The canary is a separate process,
because the work of a test would delay messages of the same process.
"""

import asyncio
import subprocess
import sys
import time
from typing import NamedTuple

from core_broker.client import Credentials
from core_broker.client.acl import AclRpcHook
from core_broker.errors import GantryError
from core_broker.message.record import decode_records
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from tests.support.broker_requests import pull_header, send_header
from tests.support.cluster import ROOT
from tests.support.processes import kill_program

TOPIC = "Canary"
INTERVAL_S = 0.02
TIMEOUT_MS = 60_000
_STOP_S = 70.0


class Sent(NamedTuple):
    """One message: due time on the monotonic clock, latency, and the broker's answer."""

    due_s: float
    latency_ms: float
    number: int
    code: int
    offset: int


class Canary:
    """The canary process of one broker; `stop` returns its messages."""

    def __init__(self, broker_addr: str, credentials: Credentials | None = None) -> None:
        keys = (credentials.access_key, credentials.secret_key) if credentials else ()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.canary", broker_addr, *keys],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def stop(self) -> list[Sent]:
        """End the canary behind the answer to its last message."""
        out, _ = self._process.communicate("", _STOP_S)
        rows = [line.split() for line in out.splitlines()]
        return [Sent(float(r[0]), float(r[1]), int(r[2]), int(r[3]), int(r[4])) for r in rows]

    def kill(self) -> None:
        """End the canary without its messages."""
        kill_program(self._process)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


def worst_ms(messages: list[Sent], begin_s: float, end_s: float) -> float:
    """The highest latency of the messages that waited for answers in a period."""
    return max(
        (each.latency_ms for each in messages if begin_s - 0.1 <= each.due_s <= end_s), default=0.0
    )


async def missing(
    broker_addr: str, messages: list[Sent], credentials: Credentials | None = None
) -> list[int]:
    """Read the topic; return the numbers of acknowledged messages that are not at their offset."""
    stored: dict[int, int] = {}
    client, offset = RemotingClient(name="reader", rpc_hooks=_hooks(credentials)), 0
    while True:
        request = RemotingCommand.request(11, pull_header(TOPIC, offset))
        answer = await client.invoke(broker_addr, request, TIMEOUT_MS)
        if answer.code != ResponseCode.SUCCESS:
            break
        stored |= {each.queue_offset: int(each.body) for each in decode_records(answer.body)}
        offset = int(answer.ext_fields["nextBeginOffset"])
    await client.close()
    return [
        each.number
        for each in messages
        if each.code == ResponseCode.SUCCESS and stored.get(each.offset) != each.number
    ]


def _hooks(credentials: Credentials | None) -> list[AclRpcHook]:
    return [AclRpcHook(credentials.access_key, credentials.secret_key)] if credentials else []


async def _send(client: RemotingClient, addr: str, number: int, due_s: float) -> Sent:
    command = RemotingCommand.request(310, send_header(TOPIC), b"%d" % number)
    try:
        answer = await client.invoke(addr, command, TIMEOUT_MS)
        code, offset = answer.code, int(answer.ext_fields.get("queueOffset", -1))
    except GantryError:
        code, offset = -1, -1
    return Sent(due_s, (time.monotonic() - due_s) * 1000, number, code, offset)


async def _run(addr: str, credentials: Credentials | None) -> None:
    client = RemotingClient(name="canary", rpc_hooks=_hooks(credentials))
    sending = list[asyncio.Task[Sent]]()
    await _send(client, addr, 0, time.monotonic())
    print("ready", flush=True)
    end = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    due_s = time.monotonic()
    while not end.done():
        due_s += INTERVAL_S
        await asyncio.sleep(max(due_s - time.monotonic(), 0))
        sending.append(asyncio.create_task(_send(client, addr, len(sending) + 1, due_s)))
    for sent in await asyncio.gather(*sending):
        print(*sent)
    await client.close()


if __name__ == "__main__":
    asyncio.run(_run(sys.argv[1], Credentials(*sys.argv[2:]) if sys.argv[2:] else None))

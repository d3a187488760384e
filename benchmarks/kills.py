"""Kills of a broker under load: how many acknowledged messages does a broker lose?

Connections send in a closed loop and note the unique key of each acknowledged message. The broker
is killed with SIGKILL, started again on its store, and all its messages are read. An acknowledged
message that is not read is lost. A kill of the process is no power cut: the page cache survives.
"""

import asyncio
import itertools
from collections import Counter
from contextlib import suppress
from typing import Any, Final

from benchmarks.measuring import catch_up_seconds
from benchmarks.processes import Cluster
from benchmarks.requests import KEY, QUEUES, send_template
from core_broker.client import PullConsumer
from core_broker.errors import GantryError
from core_broker.message.properties import PROPERTY_UNIQ_KEY
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand

CONNECTIONS: Final = 32
#: Sends before the kill, seconds.
LOAD_SECONDS: Final = 2.0
LENGTH_BYTES: Final = 4
#: Time limit for the restarted broker to answer with all its messages.
READ_SECONDS_MAX: Final = 300
RETRY_SECONDS: Final = 0.5


def kill_repeatedly(cluster: Cluster, kills: int) -> dict[str, Any]:
    """Kill the broker under load `kills` times; counts over all kills."""
    acknowledged = lost = duplicated = 0
    seconds = []
    for number in range(kills):
        topic = f"Kill{number}"
        keys = asyncio.run(_load(cluster, topic))
        seconds.append(cluster.kill_and_restart())
        found = asyncio.run(asyncio.wait_for(_read_all(cluster, topic), READ_SECONDS_MAX))
        acknowledged += len(keys)
        lost += len(keys - found.keys())
        duplicated += sum(count - 1 for count in found.values())
    return {
        "kills": kills,
        "acknowledged": acknowledged,
        "lost": lost,
        "duplicated": duplicated,
        "sent_per_second": int(acknowledged / kills / LOAD_SECONDS),
        "restart_seconds": round(max(seconds), 2),
    }


async def _load(cluster: Cluster, topic: str) -> set[str]:
    """Send until the broker is killed; returns the keys of the acknowledged messages."""
    keys: set[str] = set()
    numbers = itertools.count()
    host, _, port = cluster.broker_addr.rpartition(":")
    async with asyncio.TaskGroup() as group:
        for connection in range(CONNECTIONS):
            group.create_task(_send(host, int(port), topic, connection, numbers, keys))
        await asyncio.sleep(LOAD_SECONDS)
        cluster.broker.process.kill()
    return keys


async def _send(
    host: str,
    port: int,
    topic: str,
    connection: int,
    numbers: "itertools.count[int]",
    keys: set[str],
) -> None:
    """Send on one connection until the connection is lost."""
    frame = send_template(connection % QUEUES, topic).frame
    reader, writer = await asyncio.open_connection(host, port)
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        while True:
            key = f"{next(numbers):0{len(KEY)}d}"
            writer.write(frame.replace(KEY.encode(), key.encode()))
            head = await reader.readexactly(LENGTH_BYTES)
            rest = await reader.readexactly(int.from_bytes(head, "big"))
            if RemotingCommand.decode(head + rest).code == ResponseCode.SUCCESS:
                keys.add(key)
    writer.close()


async def _read_all(cluster: Cluster, topic: str) -> Counter[str]:
    """Read all messages of the topic; returns how often each key was read."""
    async with PullConsumer("bench-kill", cluster.namesrv_addr) as consumer:
        while True:  # until the restarted broker is registered and ready
            with suppress(GantryError):
                await catch_up_seconds(cluster)
                return Counter(
                    [
                        message.properties[PROPERTY_UNIQ_KEY]
                        for queue in await consumer.queues(topic)
                        async for message in consumer.messages(queue, 0)
                    ]
                )
            await asyncio.sleep(RETRY_SECONDS)

"""Write the trace messages of a world to a store folder, as a broker would."""

import asyncio
from pathlib import Path
from typing import Any

from benchmarks.trace_world import World
from core_broker.config import BrokerConfig
from core_broker.message.model import MessageInner
from core_broker.message.topics import TRACE_TOPIC
from core_broker.store import MessageStore

PER_TURN = 64


def fill(folder: Path, world: World, **settings: Any) -> None:
    """Append the world's messages to a store in `folder`, each with its own store time."""
    asyncio.run(_fill(BrokerConfig(store_path_root_dir=str(folder), **settings), world))


async def _fill(config: BrokerConfig, world: World) -> None:
    now_ms = 0
    store = MessageStore(config, clock_ms=lambda: now_ms)
    store.load()
    store.start(asyncio.get_running_loop())
    try:
        for number, (now_ms, body) in enumerate(world.bodies()):
            store.put(_message(number, now_ms, body))
            if number % PER_TURN == 0:
                store.write_staged()
                await asyncio.sleep(0)
        store.write_staged()
        await asyncio.sleep(0)
    finally:
        store.close()


def _message(number: int, now_ms: int, body: bytes) -> MessageInner:
    return MessageInner(
        TRACE_TOPIC,
        0,  # a broker creates the topic with one queue
        body,
        {"UNIQ_KEY": f"7F0000010000{number:020X}"},
        born_timestamp=now_ms,
        born_host=("127.0.0.1", 40000),
        store_host=("127.0.0.1", 10911),
    )

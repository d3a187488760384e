"""The start of the ASGI application."""

import asyncio
import gc
from collections.abc import Mapping
from typing import Any

from console import asgi


async def test_garbage_collection_excludes_the_loaded_modules_and_is_rare() -> None:
    started = asyncio.Event()
    received: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
    received.put_nowait({"type": "lifespan.startup"})

    async def send(message: Mapping[str, Any]) -> None:
        assert message["type"] == "lifespan.startup.complete"
        started.set()

    before, threshold = gc.get_freeze_count(), gc.get_threshold()
    serving = asyncio.create_task(asgi.lifespan({}, received.get, send))
    try:
        await asyncio.wait_for(started.wait(), 120)
        assert gc.get_freeze_count() > before + 10_000
        assert gc.get_threshold()[0] == asgi.GC_THRESHOLD > threshold[0]
    finally:
        serving.cancel()
        gc.unfreeze()
        gc.set_threshold(*threshold)

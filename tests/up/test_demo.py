"""`manage.py demo` as a program: the shop sends, consumes, and produces dead letters."""

import asyncio
from pathlib import Path

import pytest

from console.demo import shop
from core_broker.client import AdminClient
from core_broker.errors import GantryError
from core_broker.message.topics import dlq_topic
from tests.up.gantry import Gantry

pytestmark = pytest.mark.timeout(300)

FAST_RETRIES = " ".join(["1s"] * 18)
DEADLINE_S = 120
POLL_S = 0.2


async def stored(admin: AdminClient, topic: str) -> int:
    """Return the number of stored messages of a topic; 0 before the topic exists."""
    try:
        route = await admin.topic_route(topic)
    except GantryError:
        return 0
    count = 0
    for broker in route.broker_datas:
        for addr in broker.broker_addrs.values():
            stats = await admin.topic_stats(addr, topic)
            count += sum(each.max_offset - each.min_offset for each in stats.values())
    return count


async def test_refused_payments_become_dead_letters(tmp_path: Path) -> None:
    dead = dlq_topic(shop.ACCOUNTING.group)
    with Gantry(
        tmp_path, "--no-worker", command="demo", ROCKETMQ_MESSAGE_DELAY_LEVEL=FAST_RETRIES
    ) as gantry:
        namesrv_addr = gantry.until(r"name server +([^ ,]+),")[1]
        await asyncio.to_thread(gantry.until_ready)
        assert "demo" in gantry.names
        async with AdminClient(namesrv_addr) as admin, asyncio.timeout(DEADLINE_S):
            while not await stored(admin, dead):
                await asyncio.sleep(POLL_S)
            assert await stored(admin, shop.ORDERS) > await stored(admin, shop.PAYMENTS) > 0
        assert await asyncio.to_thread(gantry.end) == 0, gantry.text
        assert gantry.left_running() == []

"""`manage.py demo` as a program: the shop sends, consumes, and produces dead letters."""

import asyncio
import json
import re
import socket
from pathlib import Path

import pytest

from console.demo import shop
from core_broker.client import AdminClient
from core_broker.errors import GantryError
from core_broker.message.topics import dlq_topic
from tests.support.document_blocks import run_blocks
from tests.support.processes import command_line
from tests.up.gantry import ROOT, Gantry

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


def guide(page: str, gantry: Gantry, url: str, home: Path) -> str:
    """Run the commands of a how-to page against a running Gantry."""
    namesrv_addr = re.search(r"name server +([^ ,]+),", gantry.text)
    assert namesrv_addr
    addresses = {"http://127.0.0.1:8082": url.rstrip("/"), "127.0.0.1:9876": namesrv_addr[1]}
    text = (ROOT / "docs" / "howto" / page).read_text(encoding="utf-8")
    shown = {old: new for old, new in addresses.items() if old in text}
    return run_blocks(f"howto/{page}", shown, GANTRY_HOME=str(home))


async def test_refused_payments_become_dead_letters(tmp_path: Path) -> None:
    """The commands of the guides work on the demo, and resend its dead letters."""
    dead = dlq_topic(shop.ACCOUNTING.group)
    with Gantry(
        tmp_path, "--no-worker", command="demo", ROCKETMQ_MESSAGE_DELAY_LEVEL=FAST_RETRIES
    ) as gantry:
        namesrv_addr = gantry.until(r"name server +([^ ,]+),")[1]
        url = await asyncio.to_thread(gantry.until_ready)
        assert "demo" in gantry.names
        async with AdminClient(namesrv_addr) as admin, asyncio.timeout(DEADLINE_S):
            while not await stored(admin, dead):
                await asyncio.sleep(POLL_S)
            assert await stored(admin, shop.ORDERS) > await stored(admin, shop.PAYMENTS) > 0
        pages = ("resend-dead-letters.md", "reset-offsets.md", "find-a-message.md")
        printed = [await asyncio.to_thread(guide, page, gantry, url, tmp_path) for page in pages]
        assert re.search(r'"new_offset_msg_id":"[0-9A-F]{32}"', printed[0]), printed[0]
        assert '"payments"' in printed[1]
        assert "ORDER-000001" in printed[2]
        assert await asyncio.to_thread(gantry.end) == 0, gantry.text
        assert gantry.left_running() == []


def test_the_demo_kills_a_master_that_returns_as_a_slave(tmp_path: Path) -> None:
    """The switch of the launcher; tests/api has the console's page."""
    with Gantry(tmp_path, "--no-worker", "--replicas=3", command="demo") as gantry:
        port = gantry.until(r"broker +127\.0\.0\.1:(\d+)")[1]
        url = gantry.until_ready()
        printed = guide("run-three-replicas.md", gantry, url, tmp_path)
        replicas = json.loads(printed.splitlines()[-1])
        assert len(replicas["items"][0]["replicas"]) == 3
        (console,) = [each for each in gantry.programs if "uvicorn" in " ".join(command_line(each))]
        switch_port, token, _namesrv = console.environ()["GANTRY_DEMO_CONTROL"].split(" ")
        others = [each.environ() for each in gantry.programs if each != console]
        assert not any("GANTRY_DEMO_CONTROL" in environ for environ in others)
        with socket.create_connection(("127.0.0.1", int(switch_port)), DEADLINE_S) as switch:
            switch.sendall(f"{token} kill {port}\n".encode())
            assert switch.makefile().readline() == "killed broker\n"
        gantry.until(r"\[replica-[23]\] .*This broker is the master of broker-a in epoch")
        gantry.until(r"\[broker\] .*This broker is a slave of")
        assert gantry.end() == 0, gantry.text
        assert "[broker] is killed now" in gantry.text
        assert gantry.left_running() == []

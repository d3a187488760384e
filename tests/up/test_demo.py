"""`manage.py demo` as a program: the shop sends, consumes, and produces dead letters."""

import asyncio
import re
import socket
import sys
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path

import pytest

from console.demo import shop
from core_broker.client import AdminClient
from core_broker.errors import GantryError
from core_broker.message.topics import dlq_topic
from tests.support.document_blocks import WHOLE, blocks_of, run, run_blocks
from tests.support.processes import command_line
from tests.up.api import Api
from tests.up.gantry import Gantry, status_of

pytestmark = pytest.mark.timeout(300)

FAST_RETRIES = " ".join(["1s"] * 18)
DEADLINE_S = 120
POLL_S = 0.2
FIRST = slice(0, 1)
OWN = {"tests/up/test_demo.py"}
#: Pages whose commands run on the demo: texts with the demo's values, and a word of the output.
PAGES: dict[str, tuple[dict[str, str], str]] = {
    "access.md": ({}, '"permissions"'),
    "api.md": ({}, '"accounting"'),
    "classic.md": ({}, '"payments"'),
    "console.md": ({}, "ORDER-000001"),
    "howto/find-a-message.md": ({}, "ORDER-000001"),
    "howto/reset-offsets.md": ({}, '"payments"'),
    "migrating/from-rocketmq.md": (
        {"10.0.0.1:9876": "namesrv_addr", "10.1.0.1:9876": "namesrv_addr"},
        "The cluster has these definitions.",
    ),
    "mqadmin.md": ({"10.1.0.1:9876": "namesrv_addr", "10.0.0.2:9876": "namesrv_addr"}, "orders"),
}


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


class Demo:
    """A running demo, and the commands of documents with its addresses."""

    def __init__(self, gantry: Gantry, folder: Path) -> None:
        self.gantry = gantry
        self.folder = folder
        self.url = gantry.until_ready().rstrip("/")
        self.namesrv_addr = self.printed(r"^  name server +([^ ,]+),")
        self.side_addr = "127.0.0.1:" + self.printed(r"^  broker .+ metrics on port (\d+)")
        create_token = [sys.executable, "manage.py", "create_token", "admin"]
        self.token = run(create_token, {"GANTRY_HOME": str(folder / "home")}).strip()

    def printed(self, pattern: str) -> str:
        found = re.search(pattern, self.gantry.text, re.MULTILINE)
        assert found, self.gantry.text
        return found[1]

    def run(self, page: str, texts: Mapping[str, str], part: slice = WHOLE) -> str:
        """Run the commands of a page; `texts` has texts of the page with their values."""
        blocks = [each for each in blocks_of(f"docs/{page}") if each.runner in OWN]
        code = "\n".join(each.code for each in blocks[part])
        defaults = {
            "http://127.0.0.1:8082": self.url,
            "127.0.0.1:9876": self.namesrv_addr,
            # A token for each page would start Django each time.
            "$(.venv/bin/python manage.py create_token admin)": self.token,
        }
        shown = {old: new for old, new in defaults.items() if old in code}
        return run_blocks(
            page,
            __file__,
            {**shown, **texts},
            part=part,
            folder=self.folder,
            typed=2 * "a new and long password\n",
            GANTRY_HOME=str(self.folder / "home"),
            NAMESRV_ADDR=self.namesrv_addr,
            TOKEN=self.token,
        )


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A demo with dead letters, and with the token of docs/operations.md for its metrics."""
    folder = tmp_path_factory.mktemp("demo")
    run_blocks("operations.md", __file__, {"/etc/gantry": str(folder)}, part=FIRST, folder=folder)
    token = str(folder / "metrics-token")
    with Gantry(
        folder / "home",
        "--no-worker",
        command="demo",
        ROCKETMQ_MESSAGE_DELAY_LEVEL=FAST_RETRIES,
        ROCKETMQ_METRICS_TOKEN_FILE=token,
        CONSOLE_METRICS_TOKEN_FILE=token,
    ) as gantry:
        demo = Demo(gantry, folder)
        asyncio.run(until_dead_letters(demo.namesrv_addr))
        yield demo
        assert gantry.end() == 0, gantry.text
        assert gantry.left_running() == []


async def until_dead_letters(namesrv_addr: str) -> None:
    dead = dlq_topic(shop.ACCOUNTING.group)
    async with AdminClient(namesrv_addr) as admin, asyncio.timeout(DEADLINE_S):
        while not await stored(admin, dead):
            await asyncio.sleep(POLL_S)
        assert await stored(admin, shop.ORDERS) > await stored(admin, shop.PAYMENTS) > 0


def test_refused_payments_become_dead_letters_that_the_guide_resends(demo: Demo) -> None:
    assert "demo" in demo.gantry.names
    printed = demo.run("howto/resend-dead-letters.md", {})
    assert re.search(r'"new_offset_msg_id":"[0-9A-F]{32}"', printed), printed


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_work(demo: Demo, page: str) -> None:
    texts, word = PAGES[page]
    assert word in demo.run(page, {old: getattr(demo, name) for old, name in texts.items()})


def test_the_metrics_need_the_token_of_the_page(demo: Demo) -> None:
    texts = {"/etc/gantry": str(demo.folder), "127.0.0.1:5559": demo.side_addr}
    printed = demo.run("operations.md", texts, part=slice(1, None))
    assert "rocketmq_topic_number" in printed
    assert status_of(f"http://{demo.side_addr}/metrics") == HTTPStatus.UNAUTHORIZED


def test_the_demo_kills_a_master_that_returns_as_a_slave(tmp_path: Path) -> None:
    """The switch of the launcher; tests/api has the console's page. Then the guides elect."""
    with Gantry(tmp_path / "home", "--no-worker", "--replicas=3", command="demo") as gantry:
        port = gantry.until(r"broker +127\.0\.0\.1:(\d+)")[1]
        demo = Demo(gantry, tmp_path)
        (console,) = [each for each in gantry.programs if "uvicorn" in " ".join(command_line(each))]
        switch_port, token, _namesrv = console.environ()["GANTRY_DEMO_CONTROL"].split(" ")
        others = [each.environ() for each in gantry.programs if each != console]
        assert not any("GANTRY_DEMO_CONTROL" in environ for environ in others)
        with socket.create_connection(("127.0.0.1", int(switch_port)), DEADLINE_S) as switch:
            switch.sendall(f"{token} kill {port}\n".encode())
            assert switch.makefile().readline() == "killed broker\n"
        gantry.until(r"\[replica-[23]\] .*This broker is the master of broker-a in epoch")
        gantry.until(r"\[broker\] .*This broker is a slave of")
        guides_of_replicas(demo)
        assert gantry.end() == 0, gantry.text
        assert "[broker] is killed now" in gantry.text
        assert gantry.left_running() == []


def guides_of_replicas(demo: Demo) -> None:
    """The guides show the set, and elect another master when every replica is in sync."""
    api = Api(demo.url, demo.folder / "home")
    others = [each["id"] for each in api.replicas_in_sync() if each["role"] == "slave"]
    printed = demo.run("replication.md", {'"id": 2': f'"id": {others[0]}'})
    assert '"dry_run":true' in printed.replace(" ", "")
    controllers = re.findall(r"^  controller +([^ ,]+),", demo.gantry.text, re.MULTILINE)
    texts = {"CONTROLLERS": f"'{';'.join(controllers)}'", "-b ID": f"-b {others[0]}"}
    printed = demo.run("howto/run-three-replicas.md", texts)
    assert "#BrokerMasterAddr" in printed
    assert printed.count('"in_sync":true') == 3

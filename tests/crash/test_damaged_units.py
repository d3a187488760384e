"""Damaged queue units of a real broker: consumers with and without a filter get every message."""

from pathlib import Path

import pytest

from core_broker.message.record import decode_records
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import PullMessageResponseHeader
from core_broker.store.unit_layout import UNIT_BYTES
from tests.support.broker_requests import pull_header, send_header
from tests.support.cluster import Cluster
from tests.support.unit_damage import CODE_CASES, PLACE_CASES

pytestmark = pytest.mark.crash

CASES = {**PLACE_CASES, **CODE_CASES}
#: One topic per case.
TOPICS = {f"Damaged{number}": case for number, case in enumerate(CASES)}
COUNT = 50
DAMAGED = 21
FILTERS = {"*": range(COUNT), "odd": range(1, COUNT, 2), "even || other": range(0, COUNT, 2)}


async def fill(addr: str) -> None:
    client = RemotingClient(name="producer")
    for number in range(COUNT):
        tag = "odd" if number % 2 else "even"
        for topic in TOPICS:
            header = send_header(topic, f"TAGS\1{tag}\2")
            request = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, header, b"%d" % number)
            answer = await client.invoke(addr, request, 10_000)
            assert answer.code == 0, answer.remark
    await client.close()


async def pulled(addr: str, topic: str, subscription: str) -> list[int]:
    """The numbers of the messages that a consumer gets."""
    client = RemotingClient(name="consumer")
    numbers: list[int] = []
    offset = 0
    while True:
        header = pull_header(topic, offset, subscription=subscription, expression_type="TAG")
        request = RemotingCommand.request(RequestCode.PULL_MESSAGE, header)
        answer = await client.invoke(addr, request, 30_000)
        numbers += [int(each.body) for each in decode_records(answer.body or b"")]
        found = answer.header(PullMessageResponseHeader)
        offset = found.next_begin_offset
        if offset >= found.max_offset:
            break
    await client.close()
    return numbers


def damage(store: Path) -> None:
    for topic, case in TOPICS.items():
        path = store / "consumequeue" / topic / "0" / f"{0:020d}"
        with path.open("r+b") as file:
            file.seek(DAMAGED * UNIT_BYTES)
            unit = file.read(UNIT_BYTES)
            file.seek(DAMAGED * UNIT_BYTES)
            file.write(CASES[case](unit))


@pytest.mark.parametrize("moment", ["stopped", "killed", "serving"])
async def test_reliability_05_damaged_units(tmp_path: Path, moment: str) -> None:
    with Cluster(tmp_path) as cluster:
        addr = cluster.broker_addr
        await fill(addr)
        cluster.restart_broker()  # all units are in the files
        if moment == "stopped":
            cluster.stop_broker()
        elif moment == "killed":
            cluster.kill_broker()
        damage(cluster.store_folder)
        if moment != "serving":
            cluster.restart_broker()
        for subscription in reversed(FILTERS):
            for topic, case in TOPICS.items():
                numbers = await pulled(addr, topic, subscription)
                assert numbers == list(FILTERS[subscription]), (case, subscription)
        assert "is rebuilt from the log" in cluster.broker.printed or moment != "serving"

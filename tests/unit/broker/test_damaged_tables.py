"""The tables of a broker, damaged between a stop and a start: the previous version is used."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from core_broker.errors import StoreCorrupt
from tests.unit.broker.conftest import MakeBroker, WireClient

Connect = Callable[[str], WireClient]
TABLES = ("topics.json", "subscriptionGroup.json", "consumerOffset.json", "delayOffset.json")
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "half": lambda content: content[: len(content) // 2],
    "zeros": lambda content: bytes(len(content)),
    "scrambled": lambda content: random.Random(7).randbytes(len(content)),
}


async def make_state(broker_addr: str, connect: Connect) -> None:
    """Create a topic, a group and an offset."""
    client = connect(broker_addr)
    assert (await client.send("Kept")).code == 0
    offset = {"consumerGroup": "CG", "topic": "Kept", "queueId": "0", "commitOffset": "1"}
    assert (await client.request(15, offset)).code == 0


@pytest.mark.parametrize("damage", [*DAMAGES, "removed"])
async def test_reliability_07_damaged_tables_fall_back_to_the_previous_version(
    tmp_path: Path, start_broker: MakeBroker, connect: Connect, damage: str
) -> None:
    broker = await start_broker()
    await make_state(broker.addr, connect)
    await broker.stop()
    # The second stop writes the same state as the previous version, too.
    await (await start_broker()).stop()
    for name in TABLES:
        path = tmp_path / "store" / "config" / name
        if damage == "removed":
            path.unlink()
        else:
            path.write_bytes(DAMAGES[damage](path.read_bytes()))
        path.with_name(name + ".tmp").write_bytes(b'{"half wri')
    client = connect((await start_broker()).addr)
    assert (await client.pull("Kept", sys_flag=4)).code == 0
    asked = {"consumerGroup": "CG", "topic": "Kept", "queueId": "0"}
    assert (await client.request(14, asked)).ext_fields == {"offset": "1"}


@pytest.mark.parametrize("name", ["topics.json", "consumerOffset.json"])
async def test_reliability_07_without_a_previous_version_the_start_is_refused(
    tmp_path: Path, start_broker: MakeBroker, connect: Connect, name: str
) -> None:
    broker = await start_broker()
    await make_state(broker.addr, connect)
    await broker.stop()
    path = tmp_path / "store" / "config" / name
    for each in (path, path.with_name(name + ".bak")):
        each.write_bytes(b'{"half wri')
    with pytest.raises(StoreCorrupt, match=name):
        await start_broker()
    assert path.read_bytes() == b'{"half wri', "the damaged file stays for the operator"

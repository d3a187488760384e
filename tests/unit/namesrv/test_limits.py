"""Limits of changes over a real socket: sizes, remarks, metrics, and the number of saves."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from core_broker.config import NamesrvConfig
from core_broker.durable_files import replace_file
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.frames import FrameSplitter
from core_broker.remoting.settings_update import UPDATE_BODY_BYTES_MAX
from namesrv.server import NameServer
from tests.unit.namesrv.namesrv_client import NamesrvClient


def pair(key: str, value: str) -> dict[str, str]:
    return {"namespace": "N", "key": key, "value": value}


async def test_sizes_above_a_limit_are_refused_and_counted(
    client: NamesrvClient, server: NameServer, config: NamesrvConfig
) -> None:
    size = config.max_kv_value_size
    answer = await client.request(100, pair("k", "v" * (size + 1)))
    remark = f"the value has {size + 1} bytes, over maxKvValueSize ({size})"
    assert (answer.code, answer.remark) == (1, remark)
    assert (await client.request(101, {"namespace": "N", "key": "k"})).code == 22
    body = b"orderMessageEnable=true\n".ljust(UPDATE_BODY_BYTES_MAX + 1, b"#")
    answer = await client.request(318, body=body)
    assert answer.code == 1
    assert f"the limit of an update is {UPDATE_BODY_BYTES_MAX}" in (answer.remark or "")
    assert b"orderMessageEnable=false\n" in (await client.request(319)).body
    assert (await client.request(318, body=body[:-1])).code == 0
    families = {family.name: family.samples for family in server._families()}
    assert families["rocketmq_namesrv_refused_changes_total"] == [
        ({"request_code": "100"}, 1),
        ({"request_code": "318"}, 1),
    ]


async def test_the_table_has_a_limit(client: NamesrvClient, config: NamesrvConfig) -> None:
    value = "v" * config.max_kv_value_size
    answers = [await client.request(100, pair(str(number), value)) for number in range(65)]
    assert answers[0].code == 0
    assert answers[-1].code == 1
    assert f"maxKvTableSize is {config.max_kv_table_size}" in (answers[-1].remark or "")
    assert Path(config.kv_config_path).stat().st_size < config.max_kv_table_size
    assert (await client.request(102, pair("0", ""))).code == 0
    assert (await client.request(100, pair("64", "v"))).code == 0


async def test_pipelined_changes_share_few_saves(
    client: NamesrvClient,
    server: NameServer,
    config: NamesrvConfig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    saved: list[bytes] = []

    def counting(path: Path, parts: Sequence[bytes]) -> None:
        saved.append(b"".join(parts))
        replace_file(path, parts)

    monkeypatch.setattr(server._settings._key_value_file, "_write", counting)
    frames = b""
    for number in range(1_000):
        command = RemotingCommand.request(100, pair(str(number), "v"))
        command.opaque = number
        frames += command.encode()
    host, _, port = client.addr.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(frames)
    splitter, codes = FrameSplitter(), dict[int, int]()
    async with asyncio.timeout(60):
        while len(codes) < 1_000:
            answers = splitter.feed(memoryview(await reader.read(1 << 20)))
            codes.update((answer.opaque, answer.code) for answer in answers)
    writer.close()
    await writer.wait_closed()
    assert set(codes.values()) == {0}
    # A save per read of the socket at most; the requests take a few reads.
    assert len(saved) < 50
    file = msgspec.json.decode(Path(config.kv_config_path).read_bytes())
    assert len(file["configTable"]["N"]) == 1_000

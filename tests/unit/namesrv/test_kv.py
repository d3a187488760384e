"""Key-value settings: rules of the table, the file format of RocketMQ, durability."""

import asyncio
from pathlib import Path

import pytest

from core_broker.errors import SettingsError
from namesrv.kv import AtomicFile, KeyValues, load_key_values, replace_file


def test_put_get_delete() -> None:
    table = KeyValues()
    table.put("NS", "k", "v1")
    table.put("NS", "k", "v2")
    assert table.get("NS", "k") == "v2"
    assert table.get("NS", "other") is None
    assert table.get("other", "k") is None
    assert table.namespace("other") is None
    table.delete("NS", "k")
    table.delete("other", "k")
    assert table.namespace("NS") == {}


def test_the_file_has_rocketmqs_format(tmp_path: Path) -> None:
    path = tmp_path / "namesrv" / "kvConfig.json"
    table = KeyValues()
    table.put("ORDER_TOPIC_CONFIG", "T", "broker-a:2")
    replace_file(path, table.to_json())
    assert path.read_text() == '{"configTable":{"ORDER_TOPIC_CONFIG":{"T":"broker-a:2"}}}'
    assert load_key_values(path).get("ORDER_TOPIC_CONFIG", "T") == "broker-a:2"


@pytest.mark.parametrize("text", ['{"configTable":{}}', "{}", '{"configTable":null}'])
def test_empty_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kvConfig.json"
    assert load_key_values(path).to_json() == b'{"configTable":{}}'
    path.write_text(text)
    assert load_key_values(path).namespace("NS") is None


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"configTable":{"a":{"b":1}}}', b"\xff\xfe\x00", b"[" * 100_000],
)
def test_a_damaged_file_stops_the_start_and_is_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "kvConfig.json"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match=r"kvConfig\.json"):
        load_key_values(path)
    assert path.read_bytes() == content


async def test_writes_happen_one_after_another(tmp_path: Path) -> None:
    file = AtomicFile(tmp_path / "f")
    await asyncio.gather(*(file.save(str(number).encode()) for number in range(20)))
    assert file.path.read_bytes() == b"19"
    assert [each.name for each in tmp_path.iterdir()] == ["f"]


async def test_a_failed_write_keeps_the_old_content(tmp_path: Path) -> None:
    file = AtomicFile(tmp_path / "f")
    await file.save(b"old")
    (tmp_path / "f.tmp").mkdir()
    with pytest.raises(OSError, match="directory"):
        await file.save(b"new")
    assert file.path.read_bytes() == b"old"

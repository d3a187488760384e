"""Key-value settings: rules and limits of the table, the file format of RocketMQ."""

from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.durable_files import replace_file
from core_broker.errors import RequestRefused, SettingsError
from namesrv.kv import ENTRY_OVERHEAD_BYTES, KeyValues
from tests.unit.namesrv.key_values import key_values, load


def test_put_get_delete() -> None:
    table = key_values()
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
    table = key_values()
    table.put("ORDER_TOPIC_CONFIG", "T", "broker-a:2")
    replace_file(path, [table.to_json()])
    assert path.read_text() == '{"configTable":{"ORDER_TOPIC_CONFIG":{"T":"broker-a:2"}}}'
    assert load(path).get("ORDER_TOPIC_CONFIG", "T") == "broker-a:2"


@pytest.mark.parametrize("text", ['{"configTable":{}}', "{}", '{"configTable":null}'])
def test_empty_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kvConfig.json"
    assert load(path).to_json() == b'{"configTable":{}}'
    path.write_text(text)
    assert load(path).namespace("NS") is None


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"configTable":{"a":{"b":1}}}', b"\xff\xfe\x00", b"[" * 100_000],
)
def test_a_damaged_file_stops_the_start_and_is_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "kvConfig.json"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match=r"kvConfig\.json"):
        load(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("field", range(3))
def test_long_texts_are_refused_with_the_setting(field: int) -> None:
    table = key_values(value_bytes_max=10)
    accepted, refused = ["a", "b", "c"], ["a", "b", "c"]
    accepted[field], refused[field] = "\u00e4" * 5, "\u00e4" * 6
    table.put(*accepted)
    before = table.to_json()
    with pytest.raises(RequestRefused, match=r"has 12 bytes, over maxKvValueSize \(10\)"):
        table.put(*refused)
    assert table.to_json() == before


def test_a_full_table_refuses_growth_and_accepts_the_rest() -> None:
    table = key_values(table_bytes_max=1_000)
    table.put("N", "k", "v" * 500)
    before = table.to_json()
    with pytest.raises(RequestRefused, match=r"full: it has 758 bytes.*maxKvTableSize is 1000"):
        table.put("N", "l", "v" * 200)
    with pytest.raises(RequestRefused, match="delete keys first"):
        table.put("M", "k", "v")
    assert table.to_json() == before
    table.put("N", "k", "v" * 100)
    table.put("N", "l", "v" * 200)
    table.delete("N", "k")
    table.put("M", "k", "v")


def test_emptied_namespaces_do_not_fill_the_table() -> None:
    table = key_values(table_bytes_max=10 * ENTRY_OVERHEAD_BYTES)
    for number in range(100):
        table.put(f"N{number}", "k", "v")
        table.delete(f"N{number}", "k")
    assert table.namespace("N99") == {}
    table.put("N99", "k", "v")
    assert table.get("N99", "k") == "v"


@given(
    st.lists(
        st.tuples(
            st.booleans(), st.sampled_from("NM"), st.sampled_from("kl\u00e4"), st.text(max_size=99)
        ),
        max_size=30,
    )
)
def test_the_size_of_the_table_is_exact(steps: list[tuple[bool, str, str, str]]) -> None:
    table = key_values(table_bytes_max=700)
    for is_put, namespace, key, value in steps:
        if not is_put:
            table.delete(namespace, key)
            continue
        with suppress(RequestRefused):
            table.put(namespace, key, value)
    assert table.size_bytes == loaded_again(table).size_bytes <= 700


def loaded_again(table: KeyValues) -> KeyValues:
    content = msgspec.json.decode(table.to_json())["configTable"]
    return KeyValues(content, value_bytes_max=1, table_bytes_max=1)


def test_a_loaded_table_over_the_limits_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "kvConfig.json"
    path.write_text('{"configTable":{"N":{"k":"long value"}}}')
    table = load(path, value_bytes_max=5, table_bytes_max=5)
    assert table.get("N", "k") == "long value"
    with pytest.raises(RequestRefused):
        table.put("N", "l", "v")
    table.put("N", "k", "short")
    table.delete("N", "k")

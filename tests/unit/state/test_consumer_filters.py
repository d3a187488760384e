"""state/consumer_filters.py: filters of groups, versions, dead filters, consumerFilter.json."""

import json

import pytest

from core_broker.errors import ProtocolError
from core_broker.filter import BloomFilter, compile_filter
from core_broker.filter.sql92 import Sql92Filter
from core_broker.remoting.bodies import SubscriptionData
from core_broker.state import consumer_filters
from core_broker.state.consumer_filters import (
    COMPILED_CHARS_PER_HEARTBEAT_MAX,
    DEAD_FILTER_KEPT_MS,
    ConsumerFilters,
)

NOW_MS = 1_700_000_000_000

#: Written by a Java 4.9.7 broker.
JAVA_FILE = b"""{
\t"filterDataByTopic":{
\t\t"T":{
\t\t\t"groupFilterData":{
\t\t\t\t"G":{
\t\t\t\t\t"bloomFilterData":{
\t\t\t\t\t\t"bitNum":112,
\t\t\t\t\t\t"bitPos":[1,2,3]
\t\t\t\t\t},
\t\t\t\t\t"bornTime":1600000000000,
\t\t\t\t\t"clientVersion":5,
\t\t\t\t\t"consumerGroup":"G",
\t\t\t\t\t"dead":false,
\t\t\t\t\t"deadTime":0,
\t\t\t\t\t"expression":"a = 'x'",
\t\t\t\t\t"expressionType":"SQL92",
\t\t\t\t\t"topic":"T"
\t\t\t\t}
\t\t\t},
\t\t\t"topic":"T"
\t\t}
\t}
}"""


@pytest.fixture
def filters() -> ConsumerFilters[Sql92Filter]:
    return ConsumerFilters(compile_filter, BloomFilter(20, 32).data)


def sql(expression: str, version: int = 1, topic: str = "T") -> SubscriptionData:
    return SubscriptionData(
        topic=topic, sub_string=expression, expression_type="SQL92", sub_version=version
    )


def expression(filters: ConsumerFilters[Sql92Filter], topic: str = "T") -> str | None:
    known = filters.get(topic, "G")
    return None if known is None else known.data.expression


def test_versions(filters: ConsumerFilters[Sql92Filter]) -> None:
    filters.register("G", [sql("a = 1", 3)], NOW_MS)
    filters.register("G", [sql("a = 2", 3)], NOW_MS)
    assert expression(filters) == "a = 1"
    filters.register("G", [sql("a = 2", 4)], NOW_MS)
    assert expression(filters) == "a = 2"
    filters.register("G", [sql("a = 2", 9)], NOW_MS)
    known = filters.get("T", "G")
    assert known is not None
    assert known.data.client_version == 9
    filters.register("G", [sql("a = ", 10)], NOW_MS)
    assert expression(filters) is None
    assert len(filters) == 0


def test_tags_are_not_kept(filters: ConsumerFilters[Sql92Filter]) -> None:
    filters.register("G", [SubscriptionData(topic="T", sub_string="A"), sql("", 1)], NOW_MS)
    assert len(filters) == 0
    assert filters.changes == 0


def test_death_and_return(filters: ConsumerFilters[Sql92Filter]) -> None:
    filters.register("G", [sql("a = 1"), sql("b = 1", topic="U")], NOW_MS)
    filters.register("G", [sql("a = 1")], NOW_MS + 10)
    known, other = filters.get("T", "G"), filters.get("U", "G")
    assert known is not None
    assert other is not None
    assert (known.data.is_dead, other.data.dead_time) == (False, NOW_MS + 10)
    filters.unregister("G", NOW_MS + 20)
    filters.unregister("G", NOW_MS + 30)
    assert (known.data.dead_time, other.data.dead_time) == (NOW_MS + 20, NOW_MS + 10)
    filters.register("G", [sql("a = 1")], NOW_MS + 40)
    assert not known.data.is_dead
    filters.clean(NOW_MS + 9 + DEAD_FILTER_KEPT_MS)
    assert len(filters) == 2
    filters.clean(NOW_MS + 10 + DEAD_FILTER_KEPT_MS)
    assert [known.data.topic for known in filters.of_group("G")] == ["T"]


def test_a_file_of_java(filters: ConsumerFilters[Sql92Filter]) -> None:
    filters.restore(JAVA_FILE, NOW_MS)
    known = filters.get("T", "G")
    assert known is not None
    assert known.compiled is not None
    assert known.compiled.matches({"a": "x"}) is True
    assert known.data.dead_time == NOW_MS - 30_000


def test_the_file_is_readable_by_java(filters: ConsumerFilters[Sql92Filter]) -> None:
    filters.register("CG", [sql("a = 'ü'", 7, "T1")], NOW_MS)
    assert json.loads(filters.encode()) == {
        "filterDataByTopic": {
            "T1": {
                "topic": "T1",
                "groupFilterData": {
                    "CG": {
                        "consumerGroup": "CG",
                        "topic": "T1",
                        "expression": "a = 'ü'",
                        "expressionType": "SQL92",
                        "bornTime": NOW_MS,
                        "deadTime": 0,
                        "bloomFilterData": {"bitPos": [22, 54, 12], "bitNum": 112},
                        "clientVersion": 7,
                    }
                },
            }
        }
    }
    again = ConsumerFilters(compile_filter, BloomFilter(20, 32).data)
    again.restore(filters.encode(), NOW_MS + 1)
    assert again.get("T1", "CG") is not None


def test_a_saved_expression_with_a_syntax_error(
    filters: ConsumerFilters[Sql92Filter],
) -> None:
    filters.restore(JAVA_FILE.replace(b"a = 'x'", b"a LIKE 'x'"), NOW_MS)
    known = filters.get("T", "G")
    assert known is not None
    assert known.compiled is None


@pytest.mark.parametrize("content", [b"", b"[]", b'{"filterDataByTopic":{"T":5}}'])
def test_no_such_file(filters: ConsumerFilters[Sql92Filter], content: bytes) -> None:
    with pytest.raises(ProtocolError):
        filters.restore(content, NOW_MS)


def test_bounds(filters: ConsumerFilters[Sql92Filter], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_filters, "FILTERS_MAX", 2)
    filters.register("G", [sql("a = 1", topic=f"T{number}") for number in range(5)], NOW_MS)
    assert len(filters) == 2
    monkeypatch.setattr(consumer_filters, "FILTERS_MAX", 100)
    monkeypatch.setattr(consumer_filters, "TEXT_CHARS_MAX", 20)
    filters.register("H", [sql("a = 1", topic=f"T{number}") for number in range(5)], NOW_MS)
    assert len(filters) == 4


def test_compilation_per_heartbeat_is_limited(filters: ConsumerFilters[Sql92Filter]) -> None:
    long = "a = 1 -- " + "x" * (COMPILED_CHARS_PER_HEARTBEAT_MAX // 2)
    subscriptions = [sql(long, topic=f"T{number}") for number in range(3)]
    for count in (1, 2, 3, 3):
        filters.register("G", subscriptions, NOW_MS)
        assert len(filters) == count


@pytest.mark.parametrize(
    ("name", "positions"),
    [
        ("CG#T1", [22, 54, 12]),
        ("CID_abc_efg", [49, 97, 110]),
        ("", [0, 0, 0]),
        ("0123456789abcdef", [11, 47, 60]),
        ("G#größe-topic-with-more-than-sixteen-bytes", [33, 15, 32]),
    ],
)
def test_bloom_positions(name: str, positions: list[int]) -> None:
    assert BloomFilter(20, 32).data(name).bit_pos == positions


@pytest.mark.parametrize(
    ("percent", "expected", "sizes"),
    [(20, 32, (3, 112)), (10, 128, (4, 616)), (1, 1, (7, 16)), (99, 3, (1, 8)), (20, 64, (3, 216))],
)
def test_bloom_sizes(percent: int, expected: int, sizes: tuple[int, int]) -> None:
    made = BloomFilter(percent, expected)
    assert (made.hashes, made.bits) == sizes

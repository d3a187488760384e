"""store/property_filter.py: reads filtered by properties."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest

from core_broker.message.model import MessageInner
from core_broker.message.record import decode_record
from core_broker.store import ColdRead, GetStatus, MessageStore, PropertyFilter
from core_broker.store.property_filter import WHOLE_BYTES_MAX
from tests.support.cold_files import ColdFiles
from tests.support.stores import Bench, message, warmed

TOPIC = "TopicTest"
MANY = 1_000


@pytest.fixture
def files() -> ColdFiles:
    return ColdFiles()


@pytest.fixture
def bench(tmp_path: Path, files: ColdFiles) -> Iterator[Bench]:
    bench = Bench(tmp_path, files).open()
    yield bench
    files.runs.set()
    bench.store.close()


def numbered(number: int, **changes: object) -> MessageInner:
    made = message(number, properties={"n": str(number), "long": "ü" * 100})
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def get(
    store: MessageStore, *wanted: str, offset: int = 0, messages_max: int = MANY
) -> tuple[GetStatus, list[str], int]:
    def matches(properties: Mapping[str, str]) -> bool | None:
        assert properties["long"] == "ü" * 100
        return True if properties["n"] in wanted else None

    result = store.get(TOPIC, 0, offset, 32, by_properties=PropertyFilter(matches, messages_max))
    numbers = [decode_record(record).properties["n"] for record in result.records]
    return result.status, numbers, result.next_offset


@pytest.mark.parametrize("body_bytes", [0, 1, WHOLE_BYTES_MAX - 300, WHOLE_BYTES_MAX, 9_000])
@pytest.mark.parametrize(
    "changes",
    [{}, {"born_host": ("::1", 5)}, {"born_host": ("::1", 5), "store_host": ("2001:db8::1", 6)}],
)
def test_any_record(bench: Bench, body_bytes: int, changes: dict[str, object]) -> None:
    bench.put(*(numbered(each, body=b"x" * body_bytes, **changes) for each in range(3)))
    assert get(bench.store, "1") == (GetStatus.FOUND, ["1"], 3)
    assert get(bench.store, "7") == (GetStatus.NO_MATCHED_MESSAGE, [], 3)


def test_both_tests_must_be_passed(bench: Bench) -> None:
    bench.put(*(numbered(each) for each in range(3)))
    everything = PropertyFilter(lambda _: True, MANY)
    found = bench.store.get(TOPIC, 0, 0, 32, accept=lambda _: False, by_properties=everything)
    assert found.status is GetStatus.NO_MATCHED_MESSAGE


def test_a_message_without_properties(bench: Bench) -> None:
    bench.put(message(0, properties={}))
    seen: list[dict[str, str]] = []
    wants = PropertyFilter(lambda properties: seen.append(dict(properties)), MANY)
    bench.store.get(TOPIC, 0, 0, 32, by_properties=wants)
    assert seen == [{}]


def test_no_more_messages_than_allowed_are_looked_at(bench: Bench) -> None:
    bench.put(*(numbered(each) for each in range(6)))
    assert get(bench.store, "4", messages_max=2) == (GetStatus.NO_MATCHED_MESSAGE, [], 2)
    assert get(bench.store, "4", offset=2, messages_max=3) == (GetStatus.FOUND, ["4"], 5)


def test_what_is_cold_ends_a_read_or_is_waited_for(bench: Bench, files: ColdFiles) -> None:
    for number in range(40):
        bench.put(numbered(number, body=b"x" * 3_000))
    bench.tick(60_000)
    files.evict()
    with pytest.raises(ColdRead):
        get(bench.store, "39")
    wanted = ["7", "39"]
    found: list[str] = []
    offset = 0
    while offset < 40:
        _, numbers, offset = warmed(bench.store, partial(get, bench.store, *wanted, offset=offset))
        found += numbers
    assert found == wanted

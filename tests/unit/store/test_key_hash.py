"""Key hashes equal Java's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.message.hashing import java_string_hash
from core_broker.store.key_hash import PREFIXES_MAX, KeyBatch, KeyHasher


def plain(topic: str, key: str) -> int:
    code = java_string_hash(f"{topic}#{key}")
    return 0 if code == -(2**31) else abs(code)


def test_known_answer() -> None:
    assert KeyHasher().key_hash("TopicTest", "OrderID001") == 1231272886


@given(st.text(max_size=20), st.text(max_size=60))
def test_remembered_prefixes_change_nothing(topic: str, key: str) -> None:
    hasher = KeyHasher()
    assert hasher.key_hash(topic, key) == hasher.key_hash(topic, key) == plain(topic, key)


names = st.text(max_size=30) | st.text(alphabet="ABCDEF0123456789", min_size=7, max_size=40)


@given(st.lists(st.tuples(names, names), max_size=20))
def test_many_at_once_are_the_same_as_each_alone(keys: list[tuple[str, str]]) -> None:
    hasher = KeyHasher()
    for _ in range(2):
        hashes = hasher.hashes([f"{topic}#{key}" for topic, key in keys])
        assert hashes == [plain(topic, key) for topic, key in keys]


def test_a_batch_gives_an_entry_for_each_key() -> None:
    hasher = KeyHasher()
    batch = KeyBatch(hasher)
    batch.add("T", {"UNIQ_KEY": "u", "KEYS": " a  b"}, 100, 7)
    batch.add("T", {"TAGS": "A"}, 200, 7)
    batch.add("Topic", {"KEYS": "0123456789"}, 300, 8)
    u, a, b = (plain("T", key) for key in "uab")
    last = plain("Topic", "0123456789")
    assert list(batch.take()) == [u, 100, 7, a, 100, 7, b, 100, 7, last, 300, 8]
    assert not batch.take()


def test_the_smallest_number_counts_as_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core_broker.store.key_hash.java_string_hash", lambda text: -(2**31))
    assert KeyHasher().key_hash("T", "short") == 0
    assert KeyHasher().hashes(["T#short"]) == [0]


def test_a_message_is_found_under_its_unique_key_and_each_key() -> None:
    properties = {"KEYS": "a  b", "UNIQ_KEY": "7F00000100002A9F0000000000000001", "TAGS": "A"}
    assert KeyHasher().message_hashes("T", properties) == [
        plain("T", "7F00000100002A9F0000000000000001"),
        plain("T", "a"),
        plain("T", "b"),
    ]
    assert KeyHasher().message_hashes("T", {"TAGS": "A"}) == []


def test_the_memory_is_bounded() -> None:
    hasher = KeyHasher()
    for number in range(PREFIXES_MAX + 10):
        hasher.key_hash("T", f"{number:08}-varied-")
        hasher.hashes([f"U#{number:08}-varied-"])
    assert len(hasher._prefixes) <= PREFIXES_MAX

"""Key hashes are those of Java."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.message.hashing import java_string_hash
from core_broker.store.key_hash import PREFIXES_MAX, KeyHasher


def plain(topic: str, key: str) -> int:
    code = java_string_hash(f"{topic}#{key}")
    return 0 if code == -(2**31) else abs(code)


def test_known_answer() -> None:
    assert KeyHasher().key_hash("TopicTest", "OrderID001") == 1231272886


@given(st.text(max_size=20), st.text(max_size=60))
def test_remembered_prefixes_change_nothing(topic: str, key: str) -> None:
    hasher = KeyHasher()
    assert hasher.key_hash(topic, key) == hasher.key_hash(topic, key) == plain(topic, key)


def test_the_smallest_number_counts_as_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core_broker.store.key_hash.java_string_hash", lambda text: -(2**31))
    assert KeyHasher().key_hash("T", "short") == 0


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
    assert len(hasher._prefixes) <= PREFIXES_MAX

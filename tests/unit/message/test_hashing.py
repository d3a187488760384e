"""Known answers of Java's String.hashCode."""

import pytest

from core_broker.message.hashing import java_string_hash, tags_code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("A", 65),
        ("*", 42),
        ("TagA", 2598919),
        ("TagB", 2598920),
        ("TopicTest#OrderID001", -1231272886),
        ("polygenelubricants", -(2**31)),
        ("é", 233),
        ("订单", 1129459),
        ("\U0001f600", 1772899),
    ],
)
def test_known_hashes(text: str, code: int) -> None:
    assert java_string_hash(text) == code


def test_a_long_text_hashes_as_its_definition_says() -> None:
    text = "abc" * 500
    total = 0
    for unit in text.encode():
        total = (total * 31 + unit) % 2**32
    assert java_string_hash(text) % 2**32 == total


@pytest.mark.parametrize("text", ["TopicTest#OrderID001", "订单#\U0001f600", "x" * 300])
def test_a_hash_goes_on_from_that_of_its_prefix(text: str) -> None:
    for cut in range(0, len(text) + 1, 7):
        assert java_string_hash(text[cut:], java_string_hash(text[:cut])) == java_string_hash(text)


def test_tags_code() -> None:
    assert tags_code("TagA") == 2598919
    assert tags_code(None) == 0
    assert tags_code("") == 0

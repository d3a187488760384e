"""The text form of message properties."""

import pytest

from core_broker.message.properties import (
    decode_properties,
    encode_properties,
    properties_text,
    split_keys,
)


def test_no_separator_at_the_end() -> None:
    assert properties_text({"KEYS": "k1", "TAGS": "A"}) == "KEYS\x01k1\x02TAGS\x01A"
    assert encode_properties({}) == b""


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("", {}),
        ("KEYS\x01k1\x02TAGS\x01A", {"KEYS": "k1", "TAGS": "A"}),
        ("KEYS\x01k1\x02TAGS\x01A\x02", {"KEYS": "k1", "TAGS": "A"}),
        ("a\x01b", {"a": "b"}),
        ("a\x01\x02c\x01d", {"c": "d"}),
        ("\x01bb\x02c\x01d", {"c": "d"}),
        ("no separator\x02c\x01d", {"c": "d"}),
        ("a\x01b\x01c", {"a": "b\x01c"}),
        ("a\x01b\x02a\x01c", {"a": "c"}),
        ("\x02\x02\x02", {}),
        ("订\x01单", {"订": "单"}),
    ],
)
def test_reading(text: str, properties: dict[str, str]) -> None:
    assert decode_properties(text) == properties
    assert decode_properties(text.encode()) == properties


def test_order_is_kept_and_empty_values_are_left_out() -> None:
    assert encode_properties({"b": "1", "gone": "", "a": "2"}) == b"b\x011\x02a\x012"


def test_bytes_that_are_not_utf8_are_replaced() -> None:
    assert decode_properties(b"a\x01\xff\xfe") == {"a": "\ufffd\ufffd"}


def test_split_keys() -> None:
    assert split_keys("k1 k2  k3") == ["k1", "k2", "k3"]
    assert split_keys(None) == []

"""Offset ids and unique keys."""

import pytest

from core_broker.errors import ClientError
from core_broker.message.ids import (
    UniqKeyFactory,
    offset_msg_id,
    parse_offset_msg_id,
    parse_uniq_key,
)

NOW_MS = 1_758_274_540_000
DAY_MS = 86_400_000


def test_known_offset_id() -> None:
    text = offset_msg_id("10.154.0.38", 10911, 0x2329)
    assert text == "0A9A002600002A9F0000000000002329"
    assert parse_offset_msg_id(text) == ("10.154.0.38", 10911, 0x2329)
    assert parse_offset_msg_id(text.lower()) == ("10.154.0.38", 10911, 0x2329)


def test_offset_id_with_ipv6() -> None:
    text = offset_msg_id("fd00::2", 10911, 7)
    assert len(text) == 56
    assert parse_offset_msg_id(text) == ("fd00::2", 10911, 7)


@pytest.mark.parametrize(
    "text", ["", "0A9A", "Z" * 32, "0A 9A 00 26 00 00 2A 9F 00 00 00 " + "0" * 8, "é" * 32]
)
def test_not_an_id(text: str) -> None:
    with pytest.raises(ClientError, match="no message id"):
        parse_offset_msg_id(text)
    with pytest.raises(ClientError, match="no message id"):
        parse_uniq_key(text, NOW_MS)


@pytest.mark.parametrize(("ip", "digits"), [("192.0.2.2", 32), ("fd00::2", 56)])
def test_uniq_key(ip: str, digits: int) -> None:
    factory = UniqKeyFactory(ip, 70_000, 0x18B4AAC2)
    keys = [factory.create(NOW_MS + at) for at in range(100)]
    assert len(set(keys)) == 100
    assert all(len(key) == digits and key == key.upper() for key in keys)

    parsed = parse_uniq_key(keys[5], NOW_MS + DAY_MS)
    assert parsed.ip == ip
    assert parsed.pid == 70_000 & 0xFFFF
    assert parsed.created_ms == NOW_MS + 5
    assert parsed.counter == 6


def test_keys_of_one_millisecond_differ_until_the_counter_wraps() -> None:
    factory = UniqKeyFactory("192.0.2.2", 1, 1)
    assert len({factory.create(NOW_MS) for _ in range(65_536)}) == 65_536


def test_a_key_of_last_month_is_read_in_this_one() -> None:
    key = UniqKeyFactory("192.0.2.2", 1, 1).create(NOW_MS)
    # On the tenth, the nineteenth is in the future, so the key is from the previous month.
    assert parse_uniq_key(key, NOW_MS + 20 * DAY_MS).created_ms == NOW_MS


def test_the_month_is_counted_anew() -> None:
    factory = UniqKeyFactory("192.0.2.2", 1, 1)
    factory.create(NOW_MS)
    later_ms = NOW_MS + 40 * DAY_MS
    assert parse_uniq_key(factory.create(later_ms), later_ms + 1).created_ms == later_ms


def test_a_clock_set_back_still_gives_keys() -> None:
    factory = UniqKeyFactory("192.0.2.2", 1, 1)
    factory.create(NOW_MS)
    earlier_ms = NOW_MS - 60 * DAY_MS
    assert parse_uniq_key(factory.create(earlier_ms), earlier_ms + 1).created_ms == earlier_ms

"""The body of a batch request."""

from struct import pack

import pytest

from core_broker.errors import ProtocolError
from core_broker.limits import BATCH_KEYS_MAX, BATCH_MESSAGES_MAX, BATCH_PROPERTIES_MAX
from core_broker.message.batch import (
    BatchedMessage,
    BatchLimitExceeded,
    decode_batch,
    encode_batch,
)
from core_broker.message.model import Message

BATCH = encode_batch(
    [Message("T", b"b0", keys="B0"), Message("T", b"", flag=-5), Message("T", b"b2", tags="A")]
)


def test_layout() -> None:
    first = BATCH[:4]
    assert int.from_bytes(first, "big") == 22 + 2 + len("KEYS\x01B0\x02WAIT\x01true")
    assert BATCH[4:12] == bytes(8)
    assert BATCH[20:22] == b"b0"


def test_comes_back() -> None:
    assert decode_batch(BATCH) == [
        BatchedMessage(b"b0", {"KEYS": "B0", "WAIT": "true"}),
        BatchedMessage(b"", {"WAIT": "true"}, -5),
        BatchedMessage(b"b2", {"TAGS": "A", "WAIT": "true"}),
    ]
    assert decode_batch(b"") == []


def test_start_of_a_batch_recorded_from_java() -> None:
    recorded = bytes.fromhex(
        "00000075000000000000000000000000000000026230005d4b45595301423002554e49515f4b455901"
    )
    size, body_bytes, properties_bytes = 0x75, 2, 0x5D
    assert size == 22 + body_bytes + properties_bytes
    rest = b"F" * (properties_bytes - len("KEYS\x01B0\x02UNIQ_KEY\x01"))
    (message,) = decode_batch(recorded + rest)
    assert message.body == b"b0"
    assert message.properties["KEYS"] == "B0"


def test_cut_off_anywhere() -> None:
    ends, at = {0}, 0
    while at < len(BATCH):
        at += int.from_bytes(BATCH[at : at + 4], "big")
        ends.add(at)
    for size in set(range(len(BATCH))) - ends:
        with pytest.raises(ProtocolError):
            decode_batch(BATCH[:size])


@pytest.mark.parametrize("at", [0, 3, 16, 19, 22, 23])
def test_wrong_inner_lengths(at: int) -> None:
    data = bytearray(BATCH)
    data[at] ^= 0x81
    with pytest.raises(ProtocolError):
        decode_batch(bytes(data))


@pytest.mark.parametrize(
    ("count", "properties", "excess"),
    [
        (BATCH_MESSAGES_MAX, b"", ""),
        (BATCH_MESSAGES_MAX + 1, b"", f"{BATCH_MESSAGES_MAX} messages"),
        (100, b"a\x01\x02" * 5_000, f"{BATCH_PROPERTIES_MAX} properties"),
        (100, b"KEYS\x01" + b"k " * 5_000, f"{BATCH_KEYS_MAX} keys"),
    ],
)
def test_counts_are_limited(count: int, properties: bytes, excess: str) -> None:
    one = pack(">IIIIIH", 22 + len(properties), 0, 0, 0, 0, len(properties)) + properties
    if not excess:
        assert len(decode_batch(one * count)) == count
        return
    with pytest.raises(BatchLimitExceeded, match=f"a batch has more than {excess}"):
        decode_batch(one * count)


def test_a_batch_above_the_limit_is_refused_before_decoding() -> None:
    garbled = pack(">IIIIIH", 22, 0, 0, 0, 7, 0)
    one = pack(">IIIIIH", 22, 0, 0, 0, 0, 0)
    with pytest.raises(BatchLimitExceeded):
        decode_batch(garbled + one * BATCH_MESSAGES_MAX + b"garbage")

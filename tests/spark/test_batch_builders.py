"""Pulled records converted to Arrow batches: the fast path and the slow path give equal batches."""

import random
from collections.abc import Callable, Sequence

import pytest

from core_broker.errors import ProtocolError
from core_broker.message import sysflag
from core_broker.message.compression import compress
from core_broker.message.model import MessageInner
from core_broker.message.record import decode_records, encode_record
from spark_jobs.sources import batch_builders
from spark_jobs.sources.batch_builders import VectorBatchBuilder
from spark_jobs.sources.columns import to_arrow
from spark_jobs.sources.record_heads import HEAD_COLUMNS

NARROW = ["queue_offset", "body", "broker_name"]
NAMES = sorted(HEAD_COLUMNS - {"topic", "broker_name"})
SEED = 7


def records(luck: random.Random, kinds: Sequence[int | None], topics: Sequence[str]) -> bytes:
    """Fifty records; `kinds` are compression types."""
    buffer = b""
    for number in range(50):
        kind = luck.choice(kinds)
        body = luck.randbytes(luck.randrange(40))
        buffer += encode_record(
            MessageInner(
                luck.choice(topics),
                luck.randrange(8),
                compress(body, kind) if kind is not None else body,
                {"KEYS": "a"},
                flag=luck.randrange(-9, 9),
                sys_flag=sysflag.COMPRESSED | kind if kind is not None else 0,
                born_timestamp=luck.randrange(2**40),
                born_host=luck.choice((("10.0.0.1", 1), ("2001:db8::1", 1)))
                if len(topics) > 1
                else ("10.0.0.1", 1),
                store_host=("10.0.0.2", 1),
                reconsume_times=luck.randrange(17),
            ),
            queue_offset=number,
            physical_offset=len(buffer),
            store_timestamp=luck.randrange(2**40),
        )
    return buffer


def refuse(*_: object) -> tuple[int, int]:
    """`split_records` that leaves all records to the slow path."""
    return -1, 0


Gather = Callable[..., VectorBatchBuilder]


@pytest.fixture(params=["fast", "slow"])
def gather(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Gather:
    """Collects the records of one pull, on the fast path or on the slow path."""
    if request.param == "slow":
        monkeypatch.setattr(batch_builders, "split_records", refuse)
    return gathered


def gathered(buffer: bytes, start: int = 0, end: int = 100) -> VectorBatchBuilder:
    rows = VectorBatchBuilder()
    rows.add(buffer, start, end)
    return rows


PLAIN = records(random.Random(SEED), [None], ["t"])
MIXED = records(random.Random(SEED), [sysflag.COMPRESSION_ZLIB, None], ["t", "t" * 200])


@pytest.mark.parametrize("buffer", [PLAIN, MIXED], ids=["plain", "mixed"])
def test_fast_path_and_slow_path_give_equal_batches(gather: Gather, buffer: bytes) -> None:
    rows = gather(buffer, 10, 40)
    assert rows.to_arrow(NAMES, "t", "b") == to_arrow(decode_records(buffer)[10:40], NAMES)
    for broken in (buffer[:-1], buffer[:50], b"\0" * 100):
        with pytest.raises(ProtocolError):
            gather(broken).to_arrow(NAMES, "t", "b")


@pytest.mark.parametrize("middle", [PLAIN, MIXED, b""], ids=["plain", "mixed", "nothing"])
def test_pulled_records_keep_the_order_of_the_pulls(middle: bytes) -> None:
    names = ["topic", "queue_offset", "broker_name", "body"]
    asked = [(PLAIN, 45, 99), (PLAIN, 0, 2), (middle, 20, 22), (PLAIN, 7, 8)]
    rows = VectorBatchBuilder()
    for buffer, start, end in asked:
        rows.add(buffer, start, end)
    found = rows.to_arrow(names, "t", "b").to_pylist()
    parts = [part for buffer, start, end in asked for part in decode_records(buffer)[start:end]]
    assert [(row["queue_offset"], row["body"]) for row in found] == [
        (part.queue_offset, part.decompressed_body()) for part in parts
    ]
    assert {(row["topic"], row["broker_name"]) for row in found} == {("t", "b")}


def test_a_batch_without_pulls() -> None:
    assert VectorBatchBuilder().to_arrow(NARROW, "t", "b").num_rows == 0


@pytest.mark.parametrize("seed", range(30))
def test_damaged_records_raise_or_decode_as_on_the_slow_path(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    luck = random.Random(seed)
    damaged = bytearray(luck.choice((PLAIN, MIXED)))
    for _ in range(luck.randint(1, 4)):
        # Mostly in the first records, at a length field.
        damaged[luck.randrange(luck.choice((8, 92, len(damaged))))] = luck.randrange(256)
    buffer = bytes(damaged[: luck.choice((len(damaged), luck.randrange(len(damaged))))])
    results = []
    for _ in ("fast", "slow"):
        try:
            results.append(gathered(buffer, -(2**63), 2**63 - 1).to_arrow(NAMES, "t", "b"))
        except ProtocolError:
            results.append(None)
        monkeypatch.setattr(batch_builders, "split_records", refuse)
    assert results[0] == results[1]


@pytest.mark.parametrize("size", [0, 1, 87, 88, 89, 90, 2**31, 2**32 - 1])
def test_impossible_sizes(gather: Gather, size: int) -> None:
    record = encode_record(
        MessageInner("t", 0, b"", {}), queue_offset=0, physical_offset=0, store_timestamp=0
    )
    broken = size.to_bytes(4) + record[4:]
    for buffer in (broken, broken + PLAIN, PLAIN + broken):
        with pytest.raises(ProtocolError):
            gather(buffer).to_arrow(NAMES, "t", "b")


def test_bodies_larger_than_the_initial_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_builders, "HEADS_BYTES", 0)
    monkeypatch.setattr(batch_builders, "BODIES_BYTES", 10)
    rows = VectorBatchBuilder()
    for _ in range(5):
        rows.add(PLAIN, 0, 50)
        rows.add(MIXED, 0, 50)
    messages = [*decode_records(PLAIN), *decode_records(MIXED)] * 5
    assert rows.to_arrow(NAMES, "t", "b") == to_arrow(messages, NAMES)

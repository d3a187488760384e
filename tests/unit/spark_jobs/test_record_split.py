"""The compiled and the Python form of split_records give equal heads and bodies for any bytes."""

import random
from collections.abc import Callable

import pytest

from core_broker.fastpath import has_kernel
from core_broker.message import sysflag
from core_broker.message.model import MessageInner
from core_broker.message.record import decode_records, encode_record
from spark_jobs.sources.record_split import HEAD_BYTES, heads_bytes_max
from spark_jobs.sources.record_split import split_records as plain

Split = Callable[[bytes, int, memoryview, memoryview], tuple[int, int]]

SLOW_PATH_FLAGS = sysflag.BORN_HOST_V6 | sysflag.STORE_HOST_V6 | sysflag.COMPRESSED
SEEDS = range(200)


def forms() -> list[Split]:
    if not has_kernel():
        return [plain]
    from core_broker.kernel.record_split import split_records as compiled

    return [plain, compiled]


def records(luck: random.Random, *, on_fast_path: bool) -> bytes:
    buffer = b""
    for number in range(luck.randrange(12)):
        is_on_fast_path = on_fast_path or luck.random() < 0.9
        buffer += encode_record(
            MessageInner(
                "t" if is_on_fast_path else luck.choice(("t", "t" * 200)),
                luck.randrange(8),
                luck.randbytes(luck.choice((0, 1, 50, 5000))),
                {"KEYS": "a"} if luck.random() < 0.5 else {},
                sys_flag=0 if is_on_fast_path else luck.choice((0, sysflag.COMPRESSED)),
                born_host=(
                    "10.0.0.1" if is_on_fast_path else luck.choice(("10.0.0.1", "2001:db8::1")),
                    1,
                ),
                store_host=("10.0.0.2", 1),
            ),
            queue_offset=number,
            physical_offset=len(buffer),
            store_timestamp=luck.randrange(2**40),
        )
    return buffer


def split_by(form: Split, buffer: bytes) -> tuple[bytes, bytes] | None:
    heads, bodies = bytearray(heads_bytes_max(len(buffer))), bytearray(len(buffer))
    count, body_bytes = form(buffer, SLOW_PATH_FLAGS, memoryview(heads), memoryview(bodies))
    if count < 0:
        assert (count, body_bytes) == (-1, 0)
        return None
    return bytes(heads[: count * HEAD_BYTES]), bytes(bodies[:body_bytes])


@pytest.mark.parametrize("seed", SEEDS)
def test_fast_path_records_are_split(seed: int) -> None:
    buffer = records(random.Random(seed), on_fast_path=True)
    messages = decode_records(buffer)
    heads, at = [], 0
    for message in messages:
        heads.append(buffer[at : at + HEAD_BYTES])
        at += message.store_size
    for form in forms():
        bodies = b"".join(message.body for message in messages)
        assert split_by(form, buffer) == (b"".join(heads), bodies)


@pytest.mark.parametrize("seed", SEEDS)
def test_both_forms_reject_the_same_records(seed: int) -> None:
    luck = random.Random(seed)
    damaged = bytearray(records(luck, on_fast_path=luck.random() < 0.5) or b"\0")
    for _ in range(luck.randrange(4)):
        damaged[luck.randrange(min(len(damaged), luck.choice((8, 92, 10**6))))] = luck.choice(
            (0, 1, 0x7F, 0x80, 0xFF, luck.randrange(256))
        )
    buffer = bytes(damaged[: luck.choice((len(damaged), luck.randrange(len(damaged))))])
    results = [split_by(form, buffer) for form in forms()]
    assert all(each == results[0] for each in results)


@pytest.mark.parametrize("size", [0, 1, 87, 88, 90, 92, 2**31 - 1, 2**31, 2**32 - 1])
@pytest.mark.parametrize("at", [0, 84], ids=["record", "body"])
def test_impossible_lengths(size: int, at: int) -> None:
    record = encode_record(
        MessageInner("", 0, b"", {}), queue_offset=0, physical_offset=0, store_timestamp=0
    )
    broken = record[:at] + size.to_bytes(4) + record[at + 4 :]
    for form in forms():
        for buffer in (broken, broken + record, record + broken):
            assert split_by(form, buffer) == (None if size or at == 0 else split_by(plain, buffer))


def test_too_small_areas_raise() -> None:
    buffer = records(random.Random(5), on_fast_path=True)
    assert buffer
    for form in forms():
        for heads, bodies in ((0, len(buffer)), (heads_bytes_max(len(buffer)), 0)):
            with pytest.raises(ValueError, match=r".+"):
                form(
                    buffer,
                    SLOW_PATH_FLAGS,
                    memoryview(bytearray(heads)),
                    memoryview(bytearray(bodies)),
                )

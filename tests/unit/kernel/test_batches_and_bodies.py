"""Kernel details: batches that are undone, checksums, records that are lent as buffers."""

import random
import struct
import zlib
from pathlib import Path

import pytest

from core_broker.fastpath import has_kernel
from core_broker.message.record_layout import BODY_CRC_AT, BODY_LENGTH_AT, CRC_MASK, HEAD
from tests.support.send_frames import common_case_frame
from tests.support.two_paths import OnePath, compare
from tests.unit.kernel.test_mixed_iterations import slow_path_frame

pytestmark = pytest.mark.skipif(not has_kernel(), reason="the kernel is not compiled here")

TOPICS = (("T", 4), ("U", 2))
LOG_BYTES = 16 << 20

#: Properties of one message that send a batch to the slow path.
SLOW_PATH_PROPERTIES = {
    "delay": b"DELAY\x011",
    "transaction": b"TRAN_MSG\x01true",
    "twice": b"a\x011\x02a\x012",
    "no UTF-8": b"TAGS\x01\xc3",
    "region": b"MSG_REGION\x01x",
}


def batched(body: bytes, properties: bytes) -> bytes:
    """Encode one message of a batch."""
    size = 4 + 4 + 4 + 4 + 4 + len(body) + 2 + len(properties)
    head = struct.pack(">IIIII", size, 0, 0, 0, len(body))
    return head + body + struct.pack(">H", len(properties)) + properties


def batch(number: int, count: int, odd: bytes | None = None, at: int = 0, queue: int = 0) -> bytes:
    """The frame of a batch; message `at` has the properties `odd`."""
    parts = [
        batched(b"%d of %d" % (each, number), b"KEYS\x01k%d\x02UNIQ_KEY\x01U%d" % (each, each))
        for each in range(count)
    ]
    if odd is not None:
        parts[at] = batched(b"odd", odd)
    return common_case_frame(number, b"".join(parts), m="true", i="", e=str(queue))


@pytest.mark.parametrize("odd", SLOW_PATH_PROPERTIES.values(), ids=SLOW_PATH_PROPERTIES)
@pytest.mark.parametrize("at", [0, 2, 4])
@pytest.mark.parametrize("queue", [0, 3], ids=["a queue of this iteration", "a new queue"])
async def test_a_slow_path_message_undoes_its_batch(
    tmp_path: Path, odd: bytes, at: int, queue: int
) -> None:
    """The kernel's part is undone: offsets, units, keys and answers equal the slow path's."""
    turns = [
        [(0, batch(1, 3) + batch(2, 5, odd, at, queue)), (1, batch(3, 4) + common_case_frame(4))],
        [(0, batch(5, 5, odd, at, queue)), (1, batch(6, 2, queue=queue))],
    ]
    taken = await compare(tmp_path, turns, TOPICS)
    assert taken == 3 + 4 + 1 + 2


@pytest.mark.parametrize("cut", [1, 2, 21, 22, 40])
async def test_a_batch_that_ends_too_early_leaves_nothing(tmp_path: Path, cut: int) -> None:
    whole = batch(1, 3)
    body_at = 8 + struct.unpack_from(">I", whole, 4)[0]
    frame = common_case_frame(1, whole[body_at:-cut], m="true", i="", e="3")
    turns = [[(0, common_case_frame(0) + frame), (1, common_case_frame(2))]]
    assert await compare(tmp_path, turns, TOPICS) == 2


async def test_batches_up_to_the_end_of_a_segment(tmp_path: Path) -> None:
    """Near the end the slow path takes the batches; the stored bytes are equal."""
    turns = [[(0, batch(number, 20))] for number in range(60)]
    taken = await compare(tmp_path, turns, TOPICS, mapped_file_size_commit_log=64 * 1024)
    assert 0 < taken < 60 * 20


async def test_checksums_of_bodies_of_all_lengths(tmp_path: Path) -> None:
    """The CRC takes 256, 64, 16 and 1 byte at a time; zlib's result must be equal."""
    rng = random.Random(3)
    sizes = [*range(1100), *(256 * n + d for n in range(5, 17) for d in (-17, -1, 0, 1, 63, 65))]
    path = OnePath(tmp_path, TOPICS, mapped_file_size_commit_log=LOG_BYTES)
    path.peer()
    for first in range(0, len(sizes), 100):
        some = [rng.randbytes(size) for size in sizes[first : first + 100]]
        path.hear(0, b"".join(common_case_frame(n, body) for n, body in enumerate(some)))
        await path.settle()
    assert path.messages_sent == len(sizes)
    stored = await path.close()
    log, at = stored["commitlog/" + "0" * 20], 0
    for size in sizes:
        (body_bytes,) = struct.unpack_from(">I", log, at + BODY_LENGTH_AT)
        (crc,) = struct.unpack_from(">I", log, at + BODY_CRC_AT)
        assert body_bytes == size
        assert crc == zlib.crc32(log[at + HEAD.size :][:size]) & CRC_MASK, size
        at += struct.unpack_from(">I", log, at)[0]


async def test_records_stay_as_they_were_lent(tmp_path: Path) -> None:
    """Each slow-path send has the store take the kernel's records; one write stores everything."""
    turns = []
    for turn in range(3):
        said = []
        for number in range(12):
            said += [
                (0, common_case_frame(number, b"%d" % number * (200 + turn))),
                (1, slow_path_frame(0)),
            ]
        turns.append(said)
    assert await compare(tmp_path, turns, TOPICS, mapped_file_size_commit_log=LOG_BYTES) == 36


async def test_an_unused_begin_is_repeated(tmp_path: Path) -> None:
    """An unused `begin` counts as no send: the store is notified again of the next kept record."""
    path = OnePath(tmp_path, TOPICS)
    path.peer()
    path.peer()
    made = path.broker.ctx.store.fast_writes
    path.hear(1, slow_path_frame(1))
    assert path.sends.begin() is not None
    made.settle()
    path.hear(0, common_case_frame(0))
    assert path.sends.taker.messages == 1
    made.settle()
    made.settle()
    assert path.sends.taker.messages == 0
    path.hear(0, common_case_frame(4))
    path.sends.count_puts()
    path.hear(0, common_case_frame(8))
    await path.settle()
    assert path.broker.ctx.store.queue_range("T", 0) == (0, 3)
    await path.close()

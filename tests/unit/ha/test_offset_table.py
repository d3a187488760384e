"""Offset tables of other brokers: both dialects of JSON, other work in between, other contents."""

import asyncio

import pytest

from core_broker.errors import ProtocolError
from core_broker.ha.offset_table import PAIRS_PER_SLICE, decode_offset_table
from core_broker.state.consumer_offsets import ConsumerOffsets

VERSION = b'"dataVersion":{"counter":1,"timestamp":2}'


async def test_the_answer_of_gantry() -> None:
    offsets = ConsumerOffsets()
    for number in range(2 * PAIRS_PER_SLICE):
        offsets.commit(f"G{number}", "T", number % 9, number)
    turns = 0

    async def other_work() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(other_work())
    found = await decode_offset_table(offsets.encode())
    other.cancel()
    assert turns >= 2
    assert found == {f"T@G{number}": {number % 9: number} for number in range(2 * PAIRS_PER_SLICE)}


@pytest.mark.parametrize(
    "body",
    [
        b'{"offsetTable":{"T@G":{0:12,1:7},"U@G":{}}}',
        b'{%b,"offsetTable":{"T@G":{0:12,1:7},"U@G":{}}}' % VERSION,
        b'{"offsetTable":{"T@G":{"0":12,"1":7},"U@G":{}},%b}' % VERSION,
    ],
)
async def test_the_answers_of_rocketmq(body: bytes) -> None:
    assert await decode_offset_table(body) == {"T@G": {0: 12, 1: 7}, "U@G": {}}


@pytest.mark.parametrize("body", [b"{}", b'{"dataVersion":{}}'])
async def test_an_answer_without_offsets(body: bytes) -> None:
    assert await decode_offset_table(body) == {}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"offsetTable":[]}',
        b'{"offsetTable":{"T@G":[1]}}',
        b'{"offsetTable":{"T@G":{"x":1}}}',
        b'{"offsetTable":{"T@G":{"0":"\xff"}}}',
        b'{"offsetTable":{"T@G":{"0":1}',
        b'{"offsetTable":' + b"[" * 100_000,
    ],
)
async def test_other_contents_are_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        await decode_offset_table(body)

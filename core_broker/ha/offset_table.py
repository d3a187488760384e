"""Reads the consumer offsets of another broker (code 43) without holding the event loop.

A table may have ConsumerOffsets.ENTRIES_MAX pairs of topic and group, a fifth of a second of work
in one piece. Standard JSON is scanned once, and its pairs are decoded in slices. A Java broker
writes queue ids without quotes; such a table is parsed in a thread, in Python and so with pauses.
"""

import asyncio
from collections.abc import Mapping

import msgspec

from core_broker.remoting.bodies import ConsumerOffsetSerializeWrapper, decode_body
from core_broker.remoting.ext_fields import DECODE_FAULTS

#: "topic@group" → queue id → offset.
OffsetTable = Mapping[str, Mapping[int, int]]
#: Pairs of topic and group per slice: about a millisecond of work.
PAIRS_PER_SLICE = 1_000


class _UndecodedTable(msgspec.Struct, rename="camel"):
    """The answer with the offsets of each pair as text."""

    offset_table: dict[str, msgspec.Raw] = {}


_scan = msgspec.json.Decoder(_UndecodedTable).decode
_queues = msgspec.json.Decoder(dict[int, int], strict=False).decode


async def decode_offset_table(body: bytes) -> OffsetTable:
    """Return the offsets of an answer; raises ProtocolError for another content."""
    table: dict[str, dict[int, int]] = {}
    try:
        for count, (key, queues) in enumerate(_scan(body).offset_table.items(), start=1):
            table[key] = _queues(queues)
            if count % PAIRS_PER_SLICE == 0:
                await asyncio.sleep(0)
    except DECODE_FAULTS:
        other = await asyncio.to_thread(decode_body, ConsumerOffsetSerializeWrapper, body)
        return other.offset_table
    return table

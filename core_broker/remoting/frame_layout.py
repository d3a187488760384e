"""The layout of a frame.

    4  total length      bytes after this field = 4 + header length + body length
    4  header word       top byte: serialize type (0 JSON, 1 ROCKETMQ); low 24 bits: header length
    n  header            JSON text or binary header, see `command`
    m  body              the rest

All integers are big-endian. The compiled kernel has its own copy of these numbers;
tests/unit/kernel/test_layouts.py compares the two. Compatible with RocketMQ's NettyDecoder and
RemotingCommand.
"""

from struct import Struct

_HEAD = Struct(">II")

#: Size of the total length, bytes.
LENGTH_BYTES = 4
#: Size of total length and header word, bytes.
FRAME_HEAD_BYTES = _HEAD.size
#: Position of the serialize type in the header word, bits.
SERIALIZE_TYPE_SHIFT = 24
#: Largest header, bytes; as a mask, the header length in the header word.
HEADER_BYTES_MAX = (1 << SERIALIZE_TYPE_SHIFT) - 1

#: Total length and header word to and from bytes.
pack_frame_head = _HEAD.pack
unpack_frame_head = _HEAD.unpack_from

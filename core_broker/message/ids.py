"""The two message ids, upper-case hexadecimal.

Offset id, assigned by the storing broker (32 digits with IPv4, 56 with IPv6):

    4 or 16  address of the broker    4  port    8  offset_physical

Unique key, assigned by the sending client (32 or 56 digits):

    4 or 16  address of the client    2  process id, low bits    4  a number of the process
    4  milliseconds since the start of the month, local time     2  counter, low bits

Compatible with RocketMQ's MessageDecoder.createMessageId and MessageClientIDSetter.
"""

import time
from dataclasses import dataclass
from struct import Struct

from core_broker.errors import ClientError
from core_broker.message.hosts import address_text, packed_address

_OFFSET_ID_V4 = Struct(">4siq")
_OFFSET_ID_V6 = Struct(">16siq")
_UNIQ_KEY_TAIL = Struct(">HIIH")
_V4_DIGITS = 32
_V6_DIGITS = 56


def offset_msg_id(ip: str, port: int, offset_physical: int) -> str:
    """The offset id of a message stored at `offset_physical` by the broker at ip:port."""
    address = packed_address(ip)
    layout = _OFFSET_ID_V4 if len(address) == 4 else _OFFSET_ID_V6
    return layout.pack(address, port, offset_physical).hex().upper()


def parse_offset_msg_id(text: str) -> tuple[str, int, int]:
    """Address, port and offset_physical of an offset id; raises ClientError for malformed text."""
    data = _id_bytes(text)
    layout = _OFFSET_ID_V4 if len(text) == _V4_DIGITS else _OFFSET_ID_V6
    address, port, offset = layout.unpack(data)
    return address_text(address), port, offset


def _id_bytes(text: str) -> bytes:
    try:
        data = bytes.fromhex(text) if len(text) in {_V4_DIGITS, _V6_DIGITS} else b""
    except ValueError:
        data = b""
    if 2 * len(data) != len(text) or not data:
        raise ClientError(f"{text!r} is no message id: it has 32 or 56 hexadecimal digits")
    return data


@dataclass(frozen=True, slots=True)
class UniqKey:
    """The decoded fields of a unique key."""

    ip: str
    pid: int
    created_ms: int
    counter: int


class UniqKeyFactory:
    """Creates the unique keys of one process, up to 65536 in one millisecond."""

    def __init__(self, ip: str, pid: int, process_number: int) -> None:
        self._head = packed_address(ip).hex().upper()
        self._pid = pid & 0xFFFF
        self._process_number = process_number & 0xFFFFFFFF
        self._counter = 0
        self._month: tuple[int, int] = (0, 0)

    def create(self, now_ms: int) -> str:
        """The next unique key."""
        start, end = self._month
        if not start <= now_ms < end:
            start, end = self._month = _month_around(now_ms)
        self._counter = (self._counter + 1) & 0xFFFF
        elapsed = max(now_ms - start, 0) & 0xFFFFFFFF
        tail = _UNIQ_KEY_TAIL.pack(self._pid, self._process_number, elapsed, self._counter)
        return self._head + tail.hex().upper()


def parse_uniq_key(text: str, now_ms: int) -> UniqKey:
    """Decode a unique key; assumes the latest month that keeps the key before `now_ms`."""
    data = _id_bytes(text)
    size = len(data) - _UNIQ_KEY_TAIL.size
    pid, _, elapsed, counter = _UNIQ_KEY_TAIL.unpack_from(data, size)
    start = _month_around(now_ms)[0]
    if start + elapsed >= now_ms:
        start = _month_around(start - 1)[0]
    return UniqKey(address_text(data[:size]), pid, start + elapsed, counter)


def _month_around(moment_ms: int) -> tuple[int, int]:
    """Start of the month that contains the moment, and of the next month, local time, ms."""
    local = time.localtime(moment_ms // 1000)
    start = time.mktime((local.tm_year, local.tm_mon, 1, 0, 0, 0, 0, 0, -1))
    end = time.mktime((local.tm_year, local.tm_mon + 1, 1, 0, 0, 0, 0, 0, -1))
    return int(start) * 1000, int(end) * 1000

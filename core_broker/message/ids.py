"""The two ids of a message, both upper-case hexadecimal.

Offset id, given by the broker that stores it (32 digits with IPv4, 56 with IPv6):

    4 or 16  address of the broker    4  port    8  offset_physical

Unique key, given by the client that creates it (32 or 56 digits):

    4 or 16  address of the client    2  process id, low bits    4  a number of the process
    4  milliseconds since the start of the month, local time     2  counter, low bits

Compatible with RocketMQ's MessageDecoder.createMessageId and MessageClientIDSetter.
"""

import time
from dataclasses import dataclass
from ipaddress import ip_address
from struct import Struct

from core_broker.errors import ClientError

_OFFSET_ID_V4 = Struct(">4siq")
_OFFSET_ID_V6 = Struct(">16siq")
_UNIQ_KEY_TAIL = Struct(">HIIH")
_V4_DIGITS = 32
_V6_DIGITS = 56


def offset_msg_id(ip: str, port: int, offset_physical: int) -> str:
    """The offset id of a message stored at `offset_physical` by the broker at ip:port."""
    return offset_msg_id_of(ip_address(ip).packed, port, offset_physical)


def offset_msg_id_of(address: bytes, port: int, offset_physical: int) -> str:
    """The offset id, from an address of 4 or 16 bytes."""
    layout = _OFFSET_ID_V4 if len(address) == 4 else _OFFSET_ID_V6
    return layout.pack(address, port, offset_physical).hex().upper()


def parse_offset_msg_id(text: str) -> tuple[str, int, int]:
    """Address, port and offset_physical of an offset id; raises ClientError when it is none."""
    layout = {_V4_DIGITS: _OFFSET_ID_V4, _V6_DIGITS: _OFFSET_ID_V6}.get(len(text))
    try:
        if layout is None:
            raise ValueError(f"{len(text)} digits")
        address, port, offset = layout.unpack(bytes.fromhex(text))
    except ValueError as fault:
        raise ClientError(f"{text!r} is no offset message id: {fault}") from None
    return str(ip_address(address)), port, offset


@dataclass(frozen=True, slots=True)
class UniqKey:
    """What a unique key tells about its message."""

    ip: str
    pid: int
    created_ms: int
    counter: int


class UniqKeyFactory:
    """Creates the unique keys of one process, up to 65536 in one millisecond."""

    def __init__(self, ip: str, pid: int, process_number: int) -> None:
        self._head = ip_address(ip).packed.hex().upper()
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
    """Read a unique key; the month is the latest that does not put it into the future of now_ms."""
    size = {_V4_DIGITS: 4, _V6_DIGITS: 16}.get(len(text))
    try:
        if size is None:
            raise ValueError(f"{len(text)} digits")
        data = bytes.fromhex(text)
        pid, _, elapsed, counter = _UNIQ_KEY_TAIL.unpack_from(data, size)
    except ValueError as fault:
        raise ClientError(f"{text!r} is no unique key: {fault}") from None
    start = _month_around(now_ms)[0]
    if start + elapsed >= now_ms:
        start = _month_around(start - 1)[0]
    return UniqKey(str(ip_address(data[:size])), pid, start + elapsed, counter)


def _month_around(moment_ms: int) -> tuple[int, int]:
    """Start of the month that holds the moment, and of the next one, in local time."""
    local = time.localtime(moment_ms // 1000)
    start = time.mktime((local.tm_year, local.tm_mon, 1, 0, 0, 0, 0, 0, -1))
    end = time.mktime((local.tm_year, local.tm_mon + 1, 1, 0, 0, 0, 0, 0, -1))
    return int(start) * 1000, int(end) * 1000

"""The layout of a stored record: the table from which Structs, dtypes and offsets derive.

    4  total size              8       store timestamp, ms
    4  magic                   4|16+4  store host: address, port
    4  CRC-32 of body, 31 bit  4       reconsume times
    4  queue id                8       prepared transaction offset
    4  flag                    4+n     body length, body
    8  queue offset            1+n     topic length, topic (2+n with magic 2)
    8  physical offset         2+n     properties length, properties
    4  system flag
    8  born timestamp, ms
    4|16+4  born host: address, port

All integers are big-endian. Host addresses have 16 bytes when bits of the system flag say so.
Magic 2 is used for topics of more than 127 bytes only. The end of a log file is marked by a blank:
the number of bytes left, and BLANK_MAGIC. The compiled kernel has its own copy of these numbers in
core_broker/kernel/layout.pxd; tests/unit/kernel/test_layouts.py compares both. Compatible with
RocketMQ's CommitLog and MessageDecoder.
"""

from core_broker.message.layout import Layout
from core_broker.message.sysflag import BORN_HOST_V6, STORE_HOST_V6

RECORD_MAGIC_V1 = 0xDAA320A7
#: Magic of records whose topic length has two bytes.
RECORD_MAGIC_V2 = 0xDAA320AB
RECORD_MAGICS = frozenset({RECORD_MAGIC_V1, RECORD_MAGIC_V2})
BLANK_MAGIC = 0xCBD43194

V6_HOSTS = BORN_HOST_V6 | STORE_HOST_V6
#: Bytes that an IPv6 address takes beyond an IPv4 address.
V6_EXTRA_BYTES = 12
#: Topic length up to which a record has magic 1, bytes.
TOPIC_BYTES_V1_MAX = 127
#: Mask of a body checksum: CRC-32 without its sign bit.
CRC_MASK = 0x7FFFFFFF


def _head_layout(hosts: int) -> Layout:
    """Make the layout of a record up to its body; `hosts` has the system flag's host bits."""
    return Layout(
        ("store_size", "I"),
        ("magic", "I"),
        ("body_crc", "I"),
        ("queue_id", "i"),
        ("flag", "i"),
        ("queue_offset", "q"),
        ("physical_offset", "q"),
        ("sys_flag", "i"),
        ("born_timestamp", "q"),
        ("born_address", "16s" if hosts & BORN_HOST_V6 else "4s"),
        ("born_port", "i"),
        ("store_timestamp", "q"),
        ("store_address", "16s" if hosts & STORE_HOST_V6 else "4s"),
        ("store_port", "i"),
        ("reconsume_times", "i"),
        ("prepared_transaction_offset", "q"),
        ("body_bytes", "I"),
    )


#: Layouts of the head of a record, the fields before the body, by `sys_flag & V6_HOSTS`.
HEADS = {hosts: _head_layout(hosts) for hosts in (0, BORN_HOST_V6, STORE_HOST_V6, V6_HOSTS)}
#: The head of a record with IPv4 hosts.
HEAD = HEADS[0]
#: Total size and magic, the first fields of records and blanks.
RECORD_START = HEAD.select("store_size", "magic")
#: Free bytes at the end of a log file, for the blank.
BLANK_BYTES = RECORD_START.size
#: Size of a record without body, topic and properties, with IPv4 hosts: the head and two lengths.
RECORD_BYTES_MIN = HEAD.size + 1 + 2

MAGIC_AT = HEAD.at("magic")
BODY_CRC_AT = HEAD.at("body_crc")
QUEUE_ID_AT = HEAD.at("queue_id")
FLAG_AT = HEAD.at("flag")
QUEUE_OFFSET_AT = HEAD.at("queue_offset")
PHYSICAL_OFFSET_AT = HEAD.at("physical_offset")
SYS_FLAG_AT = HEAD.at("sys_flag")
BORN_TIMESTAMP_AT = HEAD.at("born_timestamp")
BORN_HOST_AT = HEAD.at("born_address")
#: This offset and the following ones are right with IPv4 hosts only.
STORE_TIMESTAMP_AT = HEAD.at("store_timestamp")
STORE_HOST_AT = HEAD.at("store_address")
RECONSUME_TIMES_AT = HEAD.at("reconsume_times")
BODY_LENGTH_AT = HEAD.at("body_bytes")


def record_size(body_bytes: int, topic_bytes: int, properties_bytes: int, sys_flag: int = 0) -> int:
    """The total size of a record; the host bits of the system flag count."""
    size = RECORD_BYTES_MIN + body_bytes + topic_bytes + properties_bytes
    if topic_bytes > TOPIC_BYTES_V1_MAX:
        size += 1
    return size + V6_EXTRA_BYTES * (sys_flag & V6_HOSTS).bit_count()

# cython: language_level=3, boundscheck=False, wraparound=False, annotation_typing=False
"""Split the text of trace messages into records and fields, and check the fields.

`trace.codec` documents the text. The scan reads UTF-8 bytes and writes, for every record, the place
of each text and the value of each number into flat arrays, without an object per field. The codec
builds typed records from the arrays, `trace.columns` builds Arrow columns. `trace/scan.pxd` has the
C types: the module is compiled where there is a compiler, and runs as plain Python elsewhere.
"""

from collections.abc import Sequence
from typing import Final

#: Flat buffers of bytes or numbers; the compiled module accepts any buffer of the right type.
View = Sequence[int]
Array = memoryview
#: Kinds of records in the order of their numbers. Every name has a different length.
KINDS: Final = ("Pub", "SubBefore", "SubAfter", "EndTransaction", "Recall")
BROKEN: Final = len(KINDS)
#: Reasons for a broken record, in `heads`.
UNKNOWN_KIND, FEW_FIELDS, NOT_A_NUMBER = 1, 2, 3
#: Array elements of a record. `heads`: message, index in the message, kind, bits or reason.
#: `spans`: begin and end of each text, -1 for a value that the kind lacks. `numbers`: the values.
HEADS, SPANS, NUMBERS_WIDTH = 4, 24, 6

#: Text, number or flag: its field in each kind of record, in the order of KINDS. Field 0 is the
#: kind; 0 means that the kind lacks the value.
TEXTS: Final = {
    "region_id": (2, 2, 0, 2, 2),
    "group": (3, 3, 8, 3, 3),
    "topic": (4, 0, 0, 4, 4),
    "request_id": (0, 4, 1, 0, 0),
    "msg_id": (5, 5, 2, 5, 5),
    "tags": (6, 0, 0, 6, 0),
    "keys": (7, 7, 5, 7, 0),
    "store_host": (8, 0, 0, 8, 0),
    "offset_msg_id": (12, 0, 0, 0, 0),
    "client_host": (14, 0, 0, 0, 0),
    "transaction_id": (0, 0, 0, 10, 0),
    "transaction_state": (0, 0, 0, 11, 0),
}
NUMBERS: Final = {
    "timestamp_ms": (1, 1, 7, 1, 1),
    "body_bytes": (9, 0, 0, 0, 0),
    "cost_ms": (10, 0, 3, 0, 0),
    "msg_type": (11, 0, 0, 9, 0),
    "retry_times": (0, 6, 0, 0, 0),
    "context_code": (0, 0, 6, 0, 0),
}
FLAGS: Final = {
    "success": (13, 0, 4, 0, 6),
    "from_transaction_check": (0, 0, 0, 12, 0),
}
#: Bits of a head: number `i` is present; flag `i` is true.
NUMBER_BIT: Final = 1
FLAG_BIT: Final = 1 << len(NUMBERS)

_NAMES: Final = "".join(KINDS).encode()
_NAME_BEGINS: Final = bytes(sum(map(len, KINDS[:kind])) for kind in range(len(KINDS) + 1))
#: Minimum number of fields of each kind, with the kind; a shorter record is broken.
_FIELDS_MIN: Final = bytes((13, 7, 5, 13, 7))
_TEXT_FIELDS: Final = bytes(field for fields in TEXTS.values() for field in fields)
_NUMBER_FIELDS: Final = bytes(field for fields in NUMBERS.values() for field in fields)
_FLAG_FIELDS: Final = bytes(field for fields in FLAGS.values() for field in fields)
# Numbers with a C type. A compiled literal of more than 32 bits would be a Python object.
_SUB_AFTER, _BROKEN = KINDS.index("SubAfter"), BROKEN
_NUMBER_MAX = 2**63 - 1
#: First value, factor and limit of FNV-1a with 64 bits.
_HASH_FIRST, _HASH_FACTOR, _HASH_MASK = 14695981039346656037, 1099511628211, 2**64 - 1


def records_max(terminators: int, separators: int, bodies: int) -> int:
    """Maximum number of records in `bodies` bodies with so many terminators and separators."""
    return terminators + separators // 7 + bodies


def scan_bodies(data: View, offsets: View, heads: Array, spans: Array, numbers: Array) -> int:
    """Scan the bodies between neighbouring `offsets` of `data`; returns the number of records.

    All arguments are flat views: bytes, 32-bit numbers, and 64-bit `numbers`. The arrays must hold
    `records_max` records. The numbers of a broken record are its number of fields, its begin and
    end, and begin and end of the wrong field.
    """
    fields_min, broken = _FIELDS_MIN, _BROKEN
    fields = memoryview(bytearray(4 * 18)).cast("i")
    count = 0
    for message in range(len(offsets) - 1):
        at, end, index = offsets[message], offsets[message + 1], 0
        while at < end:
            found = _split(data, at, end, fields)
            stop = fields[17]
            if stop > at:
                kind = _kind_of(data, at, fields[1] - 1)
                heads[4 * count], heads[4 * count + 1], heads[4 * count + 2] = message, index, kind
                if kind == broken:
                    reason = UNKNOWN_KIND
                elif found < fields_min[kind]:
                    reason = FEW_FIELDS
                else:
                    reason = _read(data, fields, found, kind, count, heads, spans, numbers)
                if reason != 0:
                    heads[4 * count + 2], heads[4 * count + 3] = broken, reason
                    for place in range(24):
                        spans[24 * count + place] = -1
                    numbers[6 * count], numbers[6 * count + 1] = found, at
                    numbers[6 * count + 2] = stop
                    if reason == UNKNOWN_KIND:
                        numbers[6 * count + 3], numbers[6 * count + 4] = at, fields[1] - 1
                count += 1
                index += 1
            at = stop + 1
    return count


def _split(data: View, at: int, end: int, fields: Array) -> int:
    """Find the fields of the record at `at`; returns their number.

    Writes the begins of the first 16 fields and of the field behind them to `fields`, and the end
    of the record to `fields[17]`.
    """
    found, stop = 0, at
    fields[0] = at
    while True:
        while stop < end and data[stop] != 1 and data[stop] != 2:
            stop += 1
        if found < 16:
            fields[found + 1] = stop + 1
        found += 1
        if (
            found == 8
            and _kind_of(data, fields[7], stop) != _BROKEN
            and _kind_of(data, at, fields[1] - 1) == _SUB_AFTER
        ):
            # Behind a SubAfter, the next record stands in place of the timestamp.
            fields[17] = fields[7] - 1
            return 7
        if stop == end or data[stop] == 2:
            fields[17] = stop
            return found
        stop += 1


def _read(
    data: View,
    fields: Array,
    found: int,
    kind: int,
    record: int,
    heads: Array,
    spans: Array,
    numbers: Array,
) -> int:
    """Write the values of a record; returns 0, or NOT_A_NUMBER with the wrong field."""
    text_fields, number_fields, flag_fields = _TEXT_FIELDS, _NUMBER_FIELDS, _FLAG_FIELDS
    # Old producers omit offsetMsgId (field 12): success stands in its place.
    is_old = kind == 0 and found == 13
    is_sub_after = kind == _SUB_AFTER
    bits = 0
    for place in range(12):
        field, to = text_fields[5 * place + kind], 24 * record + 2 * place
        begin = stop = 0
        if field == 0:
            begin = stop = -1
        elif field < found and not (is_old and field == 12):
            begin, stop = fields[field], fields[field + 1] - 1
            if _is_null(data, begin, stop):
                stop = begin
        spans[to], spans[to + 1] = begin, stop
    for place in range(6):
        field, to = number_fields[5 * place + kind], 6 * record + place
        numbers[to] = 0
        if field == 0 or field >= found:
            continue
        begin, stop = fields[field], fields[field + 1] - 1
        if _is_number(data, begin, stop, numbers, to):
            bits |= 1 << place
        elif not (is_sub_after and field > 5 and (begin == stop or _is_null(data, begin, stop))):
            numbers[6 * record + 3], numbers[6 * record + 4] = begin, stop
            return NOT_A_NUMBER
    for place in range(2):
        field = flag_fields[5 * place + kind]
        if field == 0:
            continue
        if is_old:
            field = 12
        if field < found and _is_true(data, fields[field], fields[field + 1] - 1):
            bits |= 64 << place  # FLAG_BIT
    heads[4 * record + 3] = bits
    return 0


def _kind_of(data: View, begin: int, stop: int) -> int:
    """The number of the kind whose name is the text; BROKEN for any other text."""
    names, begins, broken = _NAMES, _NAME_BEGINS, _BROKEN
    for kind in range(5):
        first = begins[kind]
        length = begins[kind + 1] - first
        if stop - begin == length:
            for at in range(length):
                if data[begin + at] != names[first + at]:
                    return broken
            return kind
    return broken


def _is_null(data: View, begin: int, stop: int) -> bool:
    """Whether the text is Java's null."""
    return (
        stop - begin == 4
        and data[begin] == 110
        and data[begin + 1] == 117
        and data[begin + 2] == 108
        and data[begin + 3] == 108
    )


def _is_true(data: View, begin: int, stop: int) -> bool:
    """Whether the text is true, in any case."""
    return (
        stop - begin == 4
        and data[begin] | 32 == 116
        and data[begin + 1] | 32 == 114
        and data[begin + 2] | 32 == 117
        and data[begin + 3] | 32 == 101
    )


def _is_number(data: View, begin: int, stop: int, numbers: Array, to: int) -> bool:
    """Whether the text is a 64-bit number; writes the number to `numbers[to]`."""
    is_negative = begin < stop and data[begin] == 45
    begin += is_negative
    if not 0 < stop - begin <= 19:
        return False
    value = 0
    for at in range(begin, stop):
        digit = data[at] - 48
        if digit < 0 or digit > 9:
            return False
        value = value * 10 + digit
    if value > _NUMBER_MAX + is_negative:
        return False
    numbers[to] = -value if is_negative else value
    return True


def copy_texts(
    data: View, spans: Array, place: int, count: int, begins: Array, texts: Array
) -> None:
    """Copy the texts at `place` of `count` records one after another to `texts`.

    Writes where each text begins in `texts`, and the end of the last text, to `begins`.
    """
    to = 0
    for record in range(count):
        begins[record] = to
        begin = spans[24 * record + 2 * place]
        for at in range(begin, spans[24 * record + 2 * place + 1]):
            texts[to] = data[at]
            to += 1
    begins[count] = to


def hash_texts(data: View, offsets: View, hashes: Array) -> None:
    """Write a 64-bit number for each text between neighbouring offsets: equal texts have equal
    numbers, in every process. The lake stores the numbers, so the function must never change.
    """
    for text in range(len(hashes)):
        value = _HASH_FIRST
        for at in range(offsets[text], offsets[text + 1]):
            value = ((value ^ data[at]) * _HASH_FACTOR) & _HASH_MASK
        hashes[text] = value

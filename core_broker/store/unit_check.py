"""Compares units of consume queues with the records of the log.

A unit is right when it has physical offset, size and tags code of the record with the queue's topic
and id and the unit's queue offset. The tags code decides whether a filter by tag reads the record
at all, so a flipped code hides a message. Reading each rejected record would make filters useless;
instead the broker compares each code once per queue (known_codes.py): a flipped code is rarely one
of the few codes of the queue.
"""

from core_broker.message import sysflag
from core_broker.message.properties import decode_properties
from core_broker.message.record_layout import RECORD_BYTES_MIN, RECORD_START
from core_broker.store.dispatcher import QUEUED
from core_broker.store.log_scan import Flaw, LogRecord, ReadableLog, parse_record
from core_broker.store.tags_codes import TagsCodes
from core_broker.store.unit_layout import EXT_ADDRESS_MAX, UNIT


class UnitCheck:
    """Computes the right unit of a record. One thread only, because of the cache of codes.

    With `has_ext`, after a Java broker with `enableConsumeQueueExt`, units may contain an address
    in consumequeue_ext in place of the tags code.
    """

    def __init__(self, delay_levels_ms: tuple[int, ...], *, has_ext: bool) -> None:
        self._code = TagsCodes(delay_levels_ms).code
        self._has_ext = has_ext

    def record(
        self, log: ReadableLog, name: tuple[str, int], offset: int, place: int, size: int
    ) -> LogRecord | None:
        """Return the record of a unit; None when the log has no such record at the unit's offset.

        `name` is topic and id of the queue, `offset` the queue offset; `place` and `size` are the
        unit's. Raises ColdRead as `log` does.
        """
        if size < RECORD_BYTES_MIN or place < 0:
            return None
        head = log.read(place, RECORD_BYTES_MIN)
        if len(head) < RECORD_BYTES_MIN or RECORD_START.unpack_from(head)[0] != size:
            return None
        data = log.read(place, size)
        if len(data) < size:
            return None
        record = parse_record(data, 0, place, check_crc=False)
        if isinstance(record, Flaw) or not is_message(record, name):
            return None
        return record if record.queue_offset == offset else None

    def is_right(self, record: LogRecord, code: int) -> bool:
        """Return whether a unit's tags code is right for its record."""
        is_address = self._has_ext and code <= EXT_ADDRESS_MAX
        return is_address or code == self.tags_code(record)

    def tags_code(self, record: LogRecord) -> int:
        """Return the tags code of a record."""
        properties = decode_properties(record.properties)
        return self._code(record.topic, properties, record.store_timestamp)

    def unit(self, record: LogRecord) -> bytes:
        """Return the encoded unit of a record."""
        return UNIT.pack(record.offset, record.size, self.tags_code(record))


def is_message(record: LogRecord, name: tuple[str, int]) -> bool:
    """Return whether a record is a message of a queue, given by topic and id."""
    is_queued = record.sys_flag & sysflag.TRANSACTION_MASK in QUEUED
    return is_queued and (record.topic, record.queue_id) == name

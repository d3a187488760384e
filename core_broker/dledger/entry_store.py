"""The log of a member: the commit log of its broker, read and written as entries of DLedger."""

from core_broker.dledger.codes import DLedgerCode
from core_broker.dledger.messages import Entry
from core_broker.dledger.model import NOTHING, EntriesGone, LogRefused
from core_broker.errors import StoreCorrupt, StoreReadOnly
from core_broker.message.layout import INT
from core_broker.message.record_layout import (
    BLANK_BYTES,
    RECORD_BYTES_MIN,
    RECORD_MAGICS,
    RECORD_START,
)
from core_broker.store import ColdRead, MessageStore
from core_broker.store.entry_log import EntryLog
from core_broker.store.framing import (
    ENTRIES,
    ENTRY_BYTES_MAX,
    ENTRY_HEADER_BYTES,
    EntryPlace,
    encode_entry_header,
)
from core_broker.store.log_scan import Flaw, LogRecord, parse_record

#: Entries of one push, bytes and number.
PUSH_BYTES_MAX = 256 * 1024
PUSH_ENTRIES_MAX = 512


class EntryStore:
    """The interface `EntryLog` of the node on a store. Event loop only."""

    def __init__(self, store: MessageStore) -> None:
        entries = store.entries
        assert entries is not None
        self._entries: EntryLog = entries
        self._store = store

    # -- reads --

    @property
    def begin_index(self) -> int:
        """Index of the first entry."""
        return self._entries.begin_index

    @property
    def end_index(self) -> int:
        """Index of the last written entry."""
        return self._entries.end_index

    @property
    def end_term(self) -> int:
        """Term of the last written entry."""
        return self._entries.end_term

    def term_at(self, index: int) -> int:
        """Return the term of an entry; NOTHING for one that has left the log."""
        return self._entries.place(index).term if index >= self.begin_index else NOTHING

    def batch_end(self, first: int) -> int:
        """Return the last entry of a push that begins with `first`."""
        places = self._entries.places(first, PUSH_ENTRIES_MAX)
        end = places[0].position + PUSH_BYTES_MAX
        last = places[0]
        for place in places:
            if place.position + place.size > end:
                break
            last = place
        return last.number

    def size_of(self, first: int, last: int) -> int:
        """Return the bytes of a push, and of the blank ends of segments between its entries."""
        return self._entries.end_position(last) - self._entries.place(first).position

    def matches(self, entry: Entry) -> bool:
        """Return whether the log has this entry; may wait for the disk."""
        place = self._entries.place(entry.index)
        if (place.term, place.position, place.size) != (entry.term, entry.pos, entry.size):
            return False
        start = place.position + ENTRY_HEADER_BYTES
        return self._read_now(start, place.size - ENTRY_HEADER_BYTES) == entry.body

    def _read_now(self, start: int, size: int) -> bytes:
        while True:
            try:
                return bytes(self._store.read_log(start, size))
            except ColdRead as cold:
                cold.warm()
                self._store.cold_reads.finish(cold)

    def read(self, first: int, last: int) -> list[Entry]:
        """Return entries for a push; raises ColdRead while they are not in memory.

        Raises EntriesGone when the log has lost them since the push was planned.
        """
        if first < self.begin_index:
            raise EntriesGone(f"the log begins with entry {self.begin_index}, behind {first}")
        places = self._entries.places(first, last - first + 1)
        entries: list[Entry] = []
        at = 0
        while at < len(places):
            run = _same_segment(places, at, self._store.replica.segment_size)
            start, end = run[0].position, run[-1].position + run[-1].size
            data = memoryview(self._store.read_log(start, end - start))
            if len(data) != end - start:
                raise EntriesGone(f"entry {run[0].number} is no longer in the log")
            entries += (_entry(place, data[place.position - start :]) for place in run)
            at += len(run)
        return entries

    # -- writes of a follower --

    def append(self, entries: list[Entry]) -> None:
        """Write entries at their positions; raises LogRefused, with none or some written."""
        replica = self._store.replica
        try:
            if replica.is_empty and entries[0].pos != replica.end:
                self._begin_at(entries[0].pos)
            at = 0
            while at < len(entries):
                at = self._append_run(entries, at)
        except (StoreReadOnly, StoreCorrupt, OSError) as error:
            raise LogRefused(DLedgerCode.DISK_ERROR, str(error)) from None

    def _begin_at(self, position: int) -> None:
        replica = self._store.replica
        if position % replica.segment_size:
            raise _other_size(position)
        replica.begin_at(position)

    def _append_run(self, entries: list[Entry], at: int) -> int:
        """Write the entries from `at` on that lie in one segment; return the next one."""
        replica, size = self._store.replica, self._store.replica.segment_size
        position = replica.end
        segment_end = position - position % size + size
        blank = None
        if entries[at].pos == segment_end:
            left = segment_end - position
            if entries[at].size + BLANK_BYTES <= left:
                raise _other_size(position)
            blank = ENTRIES.blank(left)
            position, segment_end = segment_end, segment_end + size
        parts: list[bytes] = []
        records: list[LogRecord] = []
        places: list[EntryPlace] = []
        while at < len(entries) and entries[at].pos < segment_end:
            entry = entries[at]
            if entry.pos != position or position + entry.size + BLANK_BYTES > segment_end:
                raise _other_size(position)
            records.append(_record_of(entry))
            header = encode_entry_header(entry.index, entry.term, entry.pos, len(entry.body))
            parts += (header, entry.body)
            places.append(EntryPlace(entry.pos, entry.size, entry.index, entry.term))
            position += entry.size
            at += 1
        replica.append(b"".join(parts), records, places, blank=blank)
        return at


def _same_segment(places: list[EntryPlace], at: int, size: int) -> list[EntryPlace]:
    segment = places[at].position // size
    stop = at
    while stop < len(places) and places[stop].position // size == segment:
        stop += 1
    return places[at:stop]


def _entry(place: EntryPlace, data: memoryview) -> Entry:
    body = bytes(data[ENTRY_HEADER_BYTES : place.size])
    return Entry(
        body=body, index=place.number, pos=place.position, size=place.size, term=place.term
    )


def _record_of(entry: Entry) -> LogRecord:
    """Return the record of an entry; raises LogRefused when it has none."""
    body, offset = entry.body, entry.pos + ENTRY_HEADER_BYTES
    reason = "its body is no record of the commit log"
    is_whole = len(body) >= RECORD_BYTES_MIN and INT.unpack_from(body)[0] == len(body)
    if entry.size != ENTRY_HEADER_BYTES + len(body) or entry.size > ENTRY_BYTES_MAX:
        reason = f"it has {len(body)} bytes, and says {entry.size} with its header"
    elif (entry.magic, entry.channel) != (1, 0):
        reason = f"magic {entry.magic} and channel {entry.channel} are not those of DLedger 0.3"
    elif is_whole and RECORD_START.unpack_from(body)[1] in RECORD_MAGICS:
        record = parse_record(body, 0, offset, check_crc=False)
        if not isinstance(record, Flaw):
            return record
        reason = record.reason
    raise LogRefused(DLedgerCode.UNEXPECTED_ARGUMENT, f"entry {entry.index} is refused: {reason}")


def _other_size(position: int) -> LogRefused:
    return LogRefused(
        DLedgerCode.INCONSISTENT_STATE,
        f"the next entry of this member must lie at {position}, that of the leader lies elsewhere;"
        " mappedFileSizeCommitLog must be equal on all members",
    )

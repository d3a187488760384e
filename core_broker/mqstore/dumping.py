"""`dump`: records of the log, units of a queue, items of the index that lead to a key."""

from collections.abc import Iterator
from itertools import islice
from typing import Literal

import msgspec

from core_broker.errors import ClientError, GantryError, ProtocolError
from core_broker.message.ids import parse_offset_msg_id
from core_broker.message.model import MessageExt
from core_broker.message.record import RECORD_HEAD, decode_record
from core_broker.mqstore.folder import DataFile, StoreFolder, data_files, read_range
from core_broker.mqstore.log_view import LogView, LogWalk
from core_broker.mqstore.report import Report
from core_broker.mqstore.sizes import Sizes
from core_broker.mqstore.verifying import Progress, no_progress
from core_broker.store.consume_queue import UNIT, UNIT_BYTES
from core_broker.store.index_layout import HEADER, ITEM, SLOT
from core_broker.store.key_hash import KeyHasher
from core_broker.store.segments import NAME_DIGITS

#: So many records, units or items are shown at most, whatever is asked for.
COUNT_MAX = 10_000
#: A damaged or endless chain is followed so far.
CHAIN_ITEMS_MAX = 1_000_000
#: Units of a queue are read so many at a time.
READ_UNITS = 1000

BodyForm = Literal["text", "hex", "none"]


class NothingThere(GantryError):
    """What was asked for is not in the folder."""


class DumpedRecord(msgspec.Struct, frozen=True, rename="camel"):
    """One message as it is stored."""

    file: str
    offset_in_file: int
    offset: int
    size: int
    topic: str
    queue_id: int
    queue_offset: int
    msg_id: str
    offset_msg_id: str
    sys_flag: int
    flag: int
    born_timestamp: int
    born_host: str
    store_timestamp: int
    store_host: str
    reconsume_times: int
    prepared_transaction_offset: int
    properties: dict[str, str]
    body_size: int
    #: In the form asked for, cut off at the bound; None when it is not wanted.
    body: str | None


class DumpedUnit(msgspec.Struct, frozen=True, rename="camel"):
    """One unit of a consume queue."""

    file: str
    offset_in_file: int
    queue_offset: int
    offset: int
    size: int
    tags_code: int


class DumpedItem(msgspec.Struct, frozen=True, rename="camel"):
    """One item of a chain in an index file."""

    file: str
    offset_in_file: int
    item: int
    key_hash: int
    #: The hash is that of the key; others in the chain share its slot only.
    is_match: bool
    offset: int
    store_timestamp: int
    previous: int


class Dumper:
    """Reads one folder; raises NothingThere for what is not in it."""

    def __init__(
        self, folder: StoreFolder, sizes: Sizes, *, body_form: BodyForm, body_bytes: int
    ) -> None:
        self.notes: list[str] = []
        self._folder = folder
        self._sizes = sizes
        self._names = Report(folder.root)
        self._body = body_form, body_bytes
        self._log = LogView(folder.log_path, folder.segments()[0], sizes.segment)

    # -- records --

    def range(
        self,
        offset: int,
        count: int,
        topic: str | None,
        queue_id: int | None,
        progress: Progress = no_progress,
    ) -> list[DumpedRecord]:
        """Return records from an offset of the log on, those of a topic and queue if named."""
        total = self._log.end - self._log.min_offset
        walk = LogWalk(
            self._log, self._note_damage, lambda done: progress(done, total), start=offset
        )
        chosen = (
            record.offset
            for record in walk
            if (topic is None or record.topic == topic)
            and (queue_id is None or record.queue_id == queue_id)
        )
        return [self._record(each) for each in islice(chosen, count)]

    def by_id(self, text: str, topic: str | None, count: int) -> list[DumpedRecord]:
        """Return the record of an offset id, or of a unique key when its topic is named."""
        try:
            _, _, offset = parse_offset_msg_id(text)
            found = self._record(offset)
        except (ClientError, NothingThere):
            found = None
        if found is not None and found.offset_msg_id == text.upper():
            return [found]
        if topic is None:
            raise NothingThere(f"no record has the offset id {text}; a unique key needs --topic")
        return self.by_key(topic, text, count)

    def by_key(self, topic: str, key: str, count: int) -> list[DumpedRecord]:
        """Return the records of a topic with a key or unique key, newest first."""
        found: list[DumpedRecord] = []
        for item in self.chain(topic, key):
            if not item.is_match:
                continue
            try:
                message, record = self._read(item.offset)
            except NothingThere as error:
                self.notes.append(f"{item.file} at {item.offset_in_file}: {error}")
                continue
            is_same = message.topic == topic and key in (*message.keys, message.msg_id)
            if is_same and record not in found:
                found.append(record)
            if len(found) >= count:
                break
        return found

    def _record(self, offset: int) -> DumpedRecord:
        return self._read(offset)[1]

    def _read(self, offset: int) -> tuple[MessageExt, DumpedRecord]:
        head = self._log.read(offset, RECORD_HEAD.size)
        try:
            if len(head) < RECORD_HEAD.size:
                raise NothingThere(f"offset {offset} is not in the log")
            message = decode_record(self._log.read(offset, RECORD_HEAD.unpack(head)[0]))
        except ProtocolError:
            raise NothingThere(f"no record begins at {offset}") from None
        return message, self._shown(message, offset)

    def _shown(self, message: MessageExt, offset: int) -> DumpedRecord:
        path, within = self._log.place(offset)
        return DumpedRecord(
            self._names.name(path),
            within,
            offset,
            message.store_size,
            message.topic,
            message.queue_id,
            message.queue_offset,
            message.msg_id,
            message.offset_msg_id,
            message.sys_flag,
            message.flag,
            message.born_timestamp,
            _host(message.born_host),
            message.store_timestamp,
            _host(message.store_host),
            message.reconsume_times,
            message.prepared_transaction_offset,
            message.properties,
            len(message.body),
            self._shown_body(message),
        )

    def _shown_body(self, message: MessageExt) -> str | None:
        form, limit = self._body
        if form == "none":
            return None
        try:
            body = message.decompressed_body()
        except GantryError:
            body = message.body
        return body[:limit].hex() if form == "hex" else body[:limit].decode("utf-8", "replace")

    def _note_damage(self, start: int, end: int, reason: str) -> None:
        path, within = self._log.place(start)
        self.notes.append(f"{self._names.name(path)} at {within} (offset {start}): {reason}")

    # -- units --

    def units(self, topic: str, queue_id: int, start: int | None, count: int) -> list[DumpedUnit]:
        """Return units of a queue from a queue offset on, by default from its first one."""
        folder = self._folder.paths.queues / topic / str(queue_id)
        files = data_files(folder, NAME_DIGITS)[0]
        if not files:
            raise NothingThere(f"queue {queue_id} of topic {topic} is not in this folder")
        per_file = self._sizes.queue_file // UNIT_BYTES
        paths = {each.start // UNIT_BYTES: each.path for each in files}
        number = min(paths) if start is None else start
        found: list[DumpedUnit] = []
        while len(found) < count and (path := paths.get(number - number % per_file)):
            within = number % per_file
            wanted = min(READ_UNITS, per_file - within, count - len(found))
            data = read_range(path, within * UNIT_BYTES, wanted * UNIT_BYTES)
            name = self._names.name(path)
            whole = len(data) - len(data) % UNIT_BYTES
            for index, (offset, size, code) in enumerate(UNIT.iter_unpack(data[:whole])):
                if size == 0:
                    return found
                at = (within + index) * UNIT_BYTES
                found.append(DumpedUnit(name, at, number + index, offset, size, code))
            if whole < wanted * UNIT_BYTES:
                break
            number += wanted
        return found

    # -- index --

    def chain(self, topic: str, key: str) -> Iterator[DumpedItem]:
        """Yield the items of all index files that the slot of a key leads to, newest first."""
        key_hash = KeyHasher().key_hash(topic, key)
        for file in reversed(self._folder.index_files()[0]):
            yield from self._chain_of(file, key_hash)

    def _chain_of(self, file: DataFile, key_hash: int) -> Iterator[DumpedItem]:
        layout, path = self._sizes.index, file.path
        header = read_range(path, 0, HEADER.size)
        slot_at = layout.slot_at(key_hash % layout.slot_count)
        data = read_range(path, slot_at, SLOT.size)
        if len(header) < HEADER.size or len(data) < SLOT.size:
            self.notes.append(f"{self._names.name(path)} is too short")
            return
        begin = HEADER.unpack(header)[0]
        (number,) = SLOT.unpack(data)
        before = layout.item_max
        for _ in range(CHAIN_ITEMS_MAX):
            if not 0 < number < before:
                return
            at = layout.item_at(number)
            data = read_range(path, at, ITEM.size)
            if len(data) < ITEM.size:
                return
            item_hash, offset, seconds, previous = ITEM.unpack(data)
            yield DumpedItem(
                self._names.name(path),
                at,
                number,
                item_hash,
                item_hash == key_hash,
                offset,
                begin + seconds * 1000,
                previous,
            )
            before, number = number, previous


def _host(host: tuple[str, int]) -> str:
    address, port = host
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"

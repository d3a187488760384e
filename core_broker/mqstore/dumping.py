"""`dump`: records of the commit log, units of a queue, index items in the chain of a key."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Literal

import msgspec

from core_broker.errors import ClientError, GantryError, ProtocolError
from core_broker.message.ids import parse_offset_msg_id
from core_broker.message.model import MessageExt
from core_broker.message.record import decode_record
from core_broker.message.record_layout import RECORD_START
from core_broker.mqstore.folder import DataFile, StoreFolder, data_files, read_range
from core_broker.mqstore.log_view import LogView, LogWalk, Progress, no_progress
from core_broker.mqstore.report import display_name
from core_broker.mqstore.sizes import Sizes
from core_broker.store.index_layout import HEADER, ITEM, SLOT
from core_broker.store.key_hash import KeyHasher
from core_broker.store.segments import NAME_DIGITS
from core_broker.store.unit_layout import UNIT, UNIT_BYTES

#: Upper bound of --count: records, units or items.
COUNT_MAX = 10_000
#: Maximum number of items followed in a damaged chain.
CHAIN_ITEMS_MAX = 1_000_000
#: Batch size of one read from a queue, units.
READ_UNITS = 1000

BodyForm = Literal["text", "hex", "none"]


class NotFound(GantryError):
    """The requested record, queue or key is not in the folder."""


class DumpedRecord(msgspec.Struct, frozen=True, rename="camel"):
    """One stored message; times in ms since 1970, sizes in bytes."""

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
    #: Body in the form of --body, cut at --body-bytes; None with --body none.
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
    #: True when the item has the hash of the key; other items of the chain share only the slot.
    is_match: bool
    offset: int
    store_timestamp: int
    previous: int


class Dumper:
    """Reads records, units and index items of one folder.

    The methods raise NotFound for missing objects; damage on the way is added to `notes`.
    """

    def __init__(
        self, folder: StoreFolder, sizes: Sizes, *, body_form: BodyForm, body_bytes: int
    ) -> None:
        self.notes: list[str] = []
        self._folder = folder
        self._sizes = sizes

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
        """Return records from an offset of the log on, optionally of one topic and queue."""
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
        return [self._record(position) for position in islice(chosen, count)]

    def by_id(self, text: str, topic: str | None, count: int) -> list[DumpedRecord]:
        """Return the record of an offset id, or with a topic the records of a unique key."""
        try:
            _, _, offset = parse_offset_msg_id(text)
            record = self._record(offset)
        except (ClientError, NotFound):
            record = None
        if record is not None and record.offset_msg_id == text.upper():
            return [record]
        if topic is None:
            raise NotFound(f"no record has the offset id {text}; a unique key needs --topic")
        return self.by_key(topic, text, count)

    def by_key(self, topic: str, key: str, count: int) -> list[DumpedRecord]:
        """Return the records of a topic with a key or unique key, newest first."""
        records: list[DumpedRecord] = []
        for item in self.chain(topic, key):
            if not item.is_match:
                continue
            try:
                message, record = self._read(item.offset)
            except NotFound as error:
                self.notes.append(f"{item.file} at {item.offset_in_file}: {error}")
                continue
            is_same = message.topic == topic and key in (*message.keys, message.msg_id)
            if is_same and record not in records:
                records.append(record)
            if len(records) >= count:
                break
        return records

    def _record(self, offset: int) -> DumpedRecord:
        return self._read(offset)[1]

    def _read(self, offset: int) -> tuple[MessageExt, DumpedRecord]:
        head = self._log.read(offset, RECORD_START.size)
        try:
            if len(head) < RECORD_START.size:
                raise NotFound(f"offset {offset} is not in the log")
            message = decode_record(self._log.read(offset, RECORD_START.unpack(head)[0]))
        except ProtocolError:
            raise NotFound(f"no record begins at {offset}") from None
        return message, self._shown(message, offset)

    def _shown(self, message: MessageExt, offset: int) -> DumpedRecord:
        path, within = self._log.locate(offset)
        return DumpedRecord(
            self._name(path),
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
        path, within = self._log.locate(start)
        self.notes.append(f"{self._name(path)} at {within} (offset {start}): {reason}")

    def _name(self, path: Path) -> str:
        return display_name(self._folder.root, path)

    # -- units --

    def units(self, topic: str, queue_id: int, start: int | None, count: int) -> list[DumpedUnit]:
        """Return units of a queue from a queue offset on, by default from the first unit."""
        folder = self._folder.paths.queues / topic / str(queue_id)
        files = data_files(folder, NAME_DIGITS)[0]
        if not files:
            raise NotFound(f"queue {queue_id} of topic {topic} is not in this folder")
        per_file = self._sizes.queue_file // UNIT_BYTES
        paths = {file.start // UNIT_BYTES: file.path for file in files}
        number = min(paths) if start is None else start
        units: list[DumpedUnit] = []
        while len(units) < count and (path := paths.get(number - number % per_file)):
            within = number % per_file
            batch = min(READ_UNITS, per_file - within, count - len(units))
            data = read_range(path, within * UNIT_BYTES, batch * UNIT_BYTES)
            name = self._name(path)
            whole = len(data) - len(data) % UNIT_BYTES
            for index, (offset, size, code) in enumerate(UNIT.iter_unpack(data[:whole])):
                if size == 0:
                    return units
                at = (within + index) * UNIT_BYTES
                units.append(DumpedUnit(name, at, number + index, offset, size, code))
            if whole < batch * UNIT_BYTES:
                break
            number += batch
        return units

    # -- index --

    def chain(self, topic: str, key: str) -> Iterator[DumpedItem]:
        """Yield the items in the chain of a key's slot, from all index files, newest first."""
        key_hash = KeyHasher().key_hash(topic, key)
        for file in reversed(self._folder.index_files()[0]):
            yield from self._chain_of(file, key_hash)

    def _chain_of(self, file: DataFile, key_hash: int) -> Iterator[DumpedItem]:
        layout, path = self._sizes.index, file.path
        header = read_range(path, 0, HEADER.size)
        slot_at = layout.slot_at(key_hash % layout.slot_count)
        data = read_range(path, slot_at, SLOT.size)
        if len(header) < HEADER.size or len(data) < SLOT.size:
            self.notes.append(f"{self._name(path)} is too short for an index file")
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
                self._name(path),
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

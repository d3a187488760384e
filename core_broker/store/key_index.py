"""All index files of a store: finds messages by topic and key, newest files first.

Compatible with RocketMQ's IndexService.
"""

import logging
import time
from dataclasses import dataclass
from pathlib import Path

from core_broker.errors import StoreCorrupt
from core_broker.store.files import Files
from core_broker.store.index_file import TAIL_BYTES_MAX, IndexFile, SlotCopies, open_index_file
from core_broker.store.index_items import ENTRY_NUMBERS, IndexEntries
from core_broker.store.index_layout import IndexLayout
from core_broker.store.key_search import KeySearch

#: Names are the local time of creation: yyyyMMddHHmmssSSS.
NAME_DIGITS = 17

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IndexFlush:
    """One flush of an index file: slots, header and items. No item may be added to its blocks."""

    file: IndexFile
    header: bytes
    blocks: list[int]
    is_last: bool

    def run(self) -> None:
        """Write and sync the file; may run off the loop."""
        if self.blocks:
            self.file.write_blocks(self.blocks)
            # The header of a full file says that its slots are complete.
            self.file.file.sync()
        self.file.file.pwrite(self.header, 0)
        self.file.file.sync()


@dataclass(frozen=True, slots=True)
class SlotShare:
    """Some changed slots of the newest file, as copies, and a header that is no older."""

    file: IndexFile
    header: bytes
    blocks: list[int]
    copies: SlotCopies

    def run(self) -> None:
        """Write without syncing: after a crash the slots are rebuilt; may run off the loop.

        The header comes first: Java treats a slot that names an item behind the header's items as
        empty, so newer slots with an older header would lose chains.
        """
        self.file.file.pwrite(self.header, 0)
        self.file.write_slots(self.copies)


class KeyIndex:
    """The index files, oldest first; the last one takes new items. Event loop only."""

    def __init__(self, files: Files, folder: Path, slot_count: int, item_max: int) -> None:
        self.folder = folder
        self._files = files
        self._layout = IndexLayout(slot_count, item_max)
        self._all: list[IndexFile] = []
        #: Full files that are not flushed.
        self._filled: list[IndexFile] = []
        #: A flush runs in an I/O thread; no file may be closed meanwhile.
        self._is_flushing = False

    @property
    def end_physical(self) -> int:
        """Physical offset of the newest indexed message, -1 without one."""
        newest = self._newest_with_items()
        return newest.end_physical if newest is not None else -1

    @property
    def end_timestamp(self) -> int:
        """Store time of the newest indexed message, ms; 0 without one."""
        newest = self._newest_with_items()
        return newest.end_timestamp if newest is not None else 0

    @property
    def complete_timestamp(self) -> int:
        """Store time of the newest message in files without waiting slots, ms; 0 without one.

        For the checkpoint: after a crash RocketMQ trusts the files that end by then, and removes
        the others (IndexService.load).
        """
        complete = (each for each in reversed(self._all) if not each.has_changed_blocks)
        return next((each.end_timestamp for each in complete if each.next_item > 1), 0)

    def ends(self) -> dict[str, int]:
        """Map the name of each file with items to the physical offset of its last message."""
        return {each.path.name: each.end_physical for each in self._all if each.next_item > 1}

    def _newest_with_items(self) -> IndexFile | None:
        return next((each for each in reversed(self._all) if each.next_item > 1), None)

    # -- add --

    def add(self, entries: IndexEntries) -> None:
        """Add entries in log order, and remove added entries from the array.

        After OSError the array contains the entries that were not added.
        """
        while entries:
            if not self._all or self._all[-1].is_full:
                self._append_file(entries[2])
            del entries[: self._all[-1].add(entries) * ENTRY_NUMBERS]

    def write_full_tail(self) -> None:
        """Write at least TAIL_BYTES_MAX of items; after OSError the items stay in memory."""
        if self._all and self._all[-1].tail_bytes >= TAIL_BYTES_MAX:
            self._all[-1].write_tail()

    def _append_file(self, timestamp: int) -> None:
        if self._all:
            self._all[-1].write_tail()
        self._files.make_dir(self.folder)
        name = file_name(timestamp)
        if self._all and name <= self._all[-1].path.name:
            name = f"{int(self._all[-1].path.name) + 1:0{NAME_DIGITS}d}"
        path = self.folder / name
        file = open_index_file(self._files, path, self._layout)
        try:
            file.create(self.end_timestamp, max(self.end_physical, 0))
        except OSError:
            file.file.close()
            raise
        if self._all:
            self._filled.append(self._all[-1])
        self._all.append(file)

    # -- query --

    def search(self, key_hash: int, begin_ms: int, end_ms: int, max_count: int) -> KeySearch:
        """Prepare a search for messages by key hash in a time range, newest first.

        Other keys may have the same hash; the reader of the messages compares keys.
        """
        starts = []
        for file in reversed(self._all):
            if file.next_item == 1:
                continue
            if begin_ms <= file.end_timestamp and end_ms >= file.begin_timestamp:
                starts.append(file.chain_start(key_hash))
            if file.begin_timestamp < begin_ms:
                break
        return KeySearch(key_hash, begin_ms, end_ms, max_count, starts)

    # -- flush --

    def take_flushes(self, *, with_slots: bool = True) -> list[IndexFlush]:
        """Write the items; return the flushes for an I/O thread. `flushed` must follow.

        Without `with_slots` the slots of the newest file stay as they are on the disk until it is
        full: new keys change the whole table, 20 MB, and `take_slot_share` writes it a share at a
        time. With slots, nothing may be added before the flushes have run.
        """
        if self._all:
            self._all[-1].write_tail()
        self._is_flushing = True
        flushes = [
            IndexFlush(each, each.header(), each.take_changed_blocks(), is_last=True)
            for each in self._filled
        ]
        self._filled.clear()
        if self._all:
            newest = self._all[-1]
            # A full file must have its slots: a crash may come after the next file is begun.
            is_whole = with_slots or newest.is_full
            blocks = newest.take_changed_blocks() if is_whole else []
            flushes.append(IndexFlush(newest, newest.header(), blocks, is_last=False))
        return flushes

    def flushed(self, flushes: list[IndexFlush], *, is_done: bool) -> None:
        """Record the outcome of the flushes."""
        self._is_flushing = False
        for each in flushes:
            if not is_done:
                each.file.mark_changed(each.blocks)
                if each.is_last:
                    self._filled.append(each.file)
            elif each.is_last:
                each.file.close_slots()

    def take_slot_share(self, share: int) -> SlotShare | None:
        """Copy one of `share` parts of the newest file's slots, unless no slot has changed.

        `share_written` must follow. A full file has no shares: a flush writes its slots before its
        header.
        """
        newest = self._all[-1] if self._all else None
        if newest is None or newest.is_full or not newest.has_changed_blocks:
            return None
        newest.write_tail()
        self._is_flushing = True
        blocks = newest.take_changed_blocks(-(-newest.block_count // share))
        return SlotShare(newest, newest.header(), blocks, newest.copied_slots(blocks))

    def share_written(self, share: SlotShare, *, is_done: bool) -> None:
        """Record the outcome of the write of a share."""
        self._is_flushing = False
        if not is_done:
            share.file.mark_changed(share.blocks)

    # -- life --

    def load(self) -> None:
        """Open the files.

        A damaged file and all later files are removed for a rebuild. Files after a file that is not
        full are removed too: they were created after its last flush.
        """
        names = [each for each in self._files.names(self.folder) if each.isdecimal()]
        for index, name in enumerate(names):
            file = self._open(self.folder / name)
            if file is not None:
                self._all.append(file)
            if file is None or not file.is_full:
                for later in names[index + (file is not None) :]:
                    self._files.remove(self.folder / later)
                break
        if self._all:
            self._all[-1].open_slots()

    def _open(self, path: Path) -> IndexFile | None:
        file = open_index_file(self._files, path, self._layout)
        try:
            file.load(self._files.size(path))
        except StoreCorrupt as flaw:
            log.warning("%s It and later index files will be rebuilt.", flaw)
            file.file.close()
            return None
        return file

    def cut_physical(self, offset_physical: int, *, is_torn: bool = False) -> None:
        """Drop the items of messages at or behind a physical offset.

        With `is_torn`, after a crash, the slots of the newest file are always rebuilt.
        """
        while self._all and self._all[-1].begin_physical >= offset_physical:
            self._remove(self._all.pop())
            is_torn = True
        if self._all and (is_torn or self._all[-1].end_physical >= offset_physical):
            self._all[-1].cut_physical(offset_physical)

    def correct_end(self, timestamp: int) -> None:
        """Set the store time of the newest message, ms; the item has full seconds only."""
        newest = self._newest_with_items()
        if newest is not None:
            newest.end_timestamp = max(newest.end_timestamp, timestamp)

    def clear(self) -> None:
        """Remove all files."""
        while self._all:
            self._remove(self._all.pop())

    def close(self) -> None:
        """Close the files; the caller has flushed."""
        for each in self._all:
            each.file.close()
        self._all.clear()
        self._filled.clear()

    def _remove(self, file: IndexFile) -> None:
        file.file.close()
        self._files.remove(file.path)

    # -- retention --

    def forget_before(self, min_physical: int) -> list[Path]:
        """Close files without messages in the log; return the paths, which the caller deletes."""
        gone = []
        while len(self._all) > 1 and self._all[0].end_physical < min_physical:
            if self._is_flushing or self._all[0] in self._filled:
                break
            file = self._all.pop(0)
            file.file.close()
            gone.append(file.path)
        return gone


def file_name(timestamp_ms: int) -> str:
    """Return the name of a file created at a time, ms."""
    seconds, ms = divmod(timestamp_ms, 1000)
    return time.strftime("%Y%m%d%H%M%S", time.localtime(seconds)) + f"{ms:03d}"

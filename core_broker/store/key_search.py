"""One search for a key in the index files; following the chains runs off the loop.

A chain may have millions of items, scattered over the file. The search copies the required state
of the event loop at its creation; written items never change.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from core_broker.store.files import File, Files
from core_broker.store.index_layout import ITEM, SLOT, IndexLayout

#: Maximum number of items followed by one search, some seconds of work.
CHAIN_ITEMS_MAX = 2_000_000

#: File, first byte, reason.
Flaw = tuple[Path, int, str]


@dataclass(frozen=True, slots=True)
class ChainStart:
    """The start of a search in one index file, with the items that are in memory only."""

    path: Path
    layout: IndexLayout
    begin_timestamp: int
    next_item: int
    #: The newest item of the chain; None when the slot must be read from the file.
    first_item: int | None
    #: Items from number `tail_from` on.
    tail: bytes
    tail_from: int


@dataclass(slots=True)
class KeySearch:
    """A search: call `run` once, then read `offsets`, newest first, and `flaws`."""

    key_hash: int
    begin_ms: int
    end_ms: int
    max_count: int
    #: Newest first.
    starts: Sequence[ChainStart]
    #: Messages at or behind this offset of the log are hidden from readers.
    hidden_from: int = sys.maxsize
    offsets: list[int] = field(default_factory=list)
    flaws: list[Flaw] = field(default_factory=list)
    _steps: int = field(default_factory=lambda: CHAIN_ITEMS_MAX)
    _locations: dict[int, tuple[Path, int]] = field(default_factory=dict)

    def run(self, files: Files) -> None:
        """Follow the chains of all files until `max_count` offsets are found."""
        for start in self.starts:
            if len(self.offsets) >= self.max_count or self._steps <= 0:
                break
            try:
                file = files.open(start.path)
            except FileNotFoundError:
                continue  # its messages have left the log
            try:
                self._follow(start, file)
            finally:
                file.close()

    def location_of(self, offset: int) -> tuple[Path, int]:
        """Return file and first byte of the item with a physical offset."""
        return self._locations[offset]

    def _follow(self, start: ChainStart, file: File) -> None:
        layout = start.layout
        slot = self.key_hash % layout.slot_count
        number = start.first_item
        if number is None:
            (number,) = SLOT.unpack(file.pread(SLOT.size, layout.slot_at(slot)))
        if not 0 <= number < start.next_item:
            reason = f"slot {slot} names item {number}, but the items end at {start.next_item}"
            self.flaws.append((start.path, layout.slot_at(slot), reason))
            return
        while number > 0 and self._steps > 0 and len(self.offsets) < self.max_count:
            self._steps -= 1
            at = layout.item_at(number)
            if number >= start.tail_from:
                item = ITEM.unpack_from(start.tail, (number - start.tail_from) * ITEM.size)
            else:
                item = ITEM.unpack(file.pread(ITEM.size, at))
            item_hash, offset, seconds, previous = item
            if item_hash < 0 or item_hash % layout.slot_count != slot:
                reason = f"item {number} is not of the chain of slot {slot} that leads to it"
                self.flaws.append((start.path, at, reason))
            stored_at = start.begin_timestamp + seconds * 1000
            is_visible = offset < self.hidden_from
            is_in_time = self.begin_ms <= stored_at <= self.end_ms
            if item_hash == self.key_hash and is_in_time and is_visible:
                self.offsets.append(offset)
                self._locations[offset] = (start.path, at)
            if not 0 <= previous < number:
                reason = f"item {number} names item {previous} as the one before it"
                self.flaws.append((start.path, at, reason))
                return
            if stored_at < self.begin_ms:
                return
            number = previous

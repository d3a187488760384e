"""Mappings of the commit log, for readers in the kernel that copy records without a call.

A segment is mapped in pieces when they are first read, so that letting one go takes little time,
and those of a removed segment go one after the other. Each piece reaches somewhat into the next
one, for the records that lie across.
"""

from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING

from core_broker.store.segments import OpenFiles

if TYPE_CHECKING:
    from core_broker.kernel.mapping import Mapping

PIECE_BYTES = 32 * 1024 * 1024
OVERLAP_BYTES = 1024 * 1024
#: Pieces that are mapped at a time; the one not used for longest goes first.
PIECES_MAX = 64


class LogMaps:
    """The pieces that are mapped. Event loop only."""

    def __init__(self, open_files: OpenFiles, segment_size: int) -> None:
        self._open_files = open_files
        self._segment_size = segment_size
        self._pieces: OrderedDict[int, Mapping] = OrderedDict()
        #: Of segments that are gone.
        self._going: list[Mapping] = []

    def __len__(self) -> int:
        return len(self._pieces)

    def get(self, path: Path, segment_start: int, offset: int) -> "Mapping | None":
        """Return the piece of a segment that holds an offset of the log."""
        within = (offset - segment_start) // PIECE_BYTES * PIECE_BYTES
        start = segment_start + within
        piece = self._pieces.get(start)
        if piece is not None:
            self._pieces.move_to_end(start)
            return piece
        size = min(PIECE_BYTES + OVERLAP_BYTES, self._segment_size - within)
        piece = self._open_files.map(path, within, size, start)
        if piece is not None:
            self._pieces[start] = piece
            if len(self._pieces) > PIECES_MAX:
                self._pieces.popitem(last=False)[1].close()
        return piece

    def forget(self, segment_start: int) -> None:
        """Give out nothing of a segment any more."""
        end = segment_start + self._segment_size
        for start in [each for each in self._pieces if segment_start <= each < end]:
            self._going.append(self._pieces.pop(start))

    def let_go(self, count: int) -> bool:
        """Let go of so many pieces of what was forgotten; True when none is left."""
        for _ in range(min(count, len(self._going))):
            self._going.pop().close()
        return not self._going

    def close(self) -> None:
        """Let go of everything."""
        self.let_go(len(self._going))
        while self._pieces:
            self._pieces.popitem()[1].close()

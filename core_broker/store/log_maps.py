"""Memory mappings of the commit log: the compiled kernel copies records without a system call.

A segment is mapped in pieces on first read, since munmap() of a large mapping blocks for long; the
pieces of a removed segment are unmapped one at a time. Neighbouring pieces overlap, so that one
piece contains any record across the boundary.
"""

from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING

from core_broker.store.segments import OpenFiles

if TYPE_CHECKING:
    from core_broker.kernel.mapping import Mapping

#: Size of a mapped piece, and its overlap with the next piece, bytes.
PIECE_BYTES = 32 * 1024 * 1024
OVERLAP_BYTES = 1024 * 1024
#: Maximum number of mapped pieces; the least recently used piece is unmapped first.
PIECES_MAX = 64


class LogMaps:
    """The mapped pieces. Event loop only."""

    def __init__(self, open_files: OpenFiles, segment_size: int) -> None:
        self._open_files = open_files
        self._segment_size = segment_size
        self._pieces: OrderedDict[int, Mapping] = OrderedDict()
        #: Pieces of removed segments, to be unmapped.
        self._removed: list[Mapping] = []

    def __len__(self) -> int:
        return len(self._pieces)

    def get(self, path: Path, segment_start: int, offset: int) -> "Mapping | None":
        """Return the piece of a segment that contains an offset of the log."""
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
        """Stop handing out pieces of a segment; `let_go` unmaps them."""
        end = segment_start + self._segment_size
        for start in [each for each in self._pieces if segment_start <= each < end]:
            self._removed.append(self._pieces.pop(start))

    def let_go(self, count: int) -> bool:
        """Unmap up to `count` pieces of removed segments; return True when none is left."""
        for _ in range(min(count, len(self._removed))):
            self._removed.pop().close()
        return not self._removed

    def close(self) -> None:
        """Unmap all pieces."""
        self.let_go(len(self._removed))
        while self._pieces:
            self._pieces.popitem()[1].close()

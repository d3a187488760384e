"""Memory mappings of the commit log: the compiled kernel reads records without a system call.

A segment is mapped in pieces on first read, since munmap() of a large mapping blocks for long; the
pieces of a removed segment are unmapped one at a time. Neighbouring pieces overlap, so that one
piece contains any record across the boundary.
"""

from collections import OrderedDict, deque
from pathlib import Path
from typing import TYPE_CHECKING

from core_broker.store.segments import OpenFiles

if TYPE_CHECKING:
    from core_broker.kernel.mapping import Mapping

#: Size of a mapped piece, and its overlap with the next piece, bytes.
PIECE_BYTES = 32 * 1024 * 1024
OVERLAP_BYTES = 1024 * 1024
#: Maximum number of pieces in use; the least recently used piece is dropped first.
PIECES_MAX = 64
#: Maximum number of dropped pieces that are still mapped: the kernel may hold addresses of all
#: records of an answer, which has at most 512, while it asks for further pieces.
DROPPED_MAX = 512


class LogMaps:
    """The mapped pieces. Event loop only."""

    def __init__(self, open_files: OpenFiles, segment_size: int) -> None:
        self._open_files = open_files
        self._segment_size = segment_size
        self._pieces: OrderedDict[int, Mapping] = OrderedDict()
        #: Pieces of removed segments, to be unmapped.
        self._removed: list[Mapping] = []
        #: The least recently used pieces, to be unmapped.
        self._dropped: deque[Mapping] = deque()

    def __len__(self) -> int:
        return len(self._pieces)

    def get(self, path: Path, segment_start: int, offset: int) -> "Mapping | None":
        """Return the piece of a segment that contains an offset of the log.

        Addresses in the piece are valid until `let_go`, and for DROPPED_MAX further calls.
        """
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
                self._dropped.append(self._pieces.popitem(last=False)[1])
            if len(self._dropped) > DROPPED_MAX:
                self._dropped.popleft().close()
        return piece

    def forget(self, segment_start: int) -> None:
        """Stop handing out pieces of a segment; `let_go` unmaps them."""
        end = segment_start + self._segment_size
        for start in [each for each in self._pieces if segment_start <= each < end]:
            self._removed.append(self._pieces.pop(start))
        for piece in [each for each in self._dropped if segment_start <= each.start < end]:
            self._dropped.remove(piece)
            self._removed.append(piece)

    def let_go(self, count: int) -> bool:
        """Unmap up to `count` pieces, between iterations of the event loop.

        Returns true when no piece of a removed segment is left.
        """
        for _ in range(count):
            if self._removed:
                self._removed.pop().close()
            elif self._dropped:
                self._dropped.popleft().close()
        return not self._removed

    def close(self) -> None:
        """Unmap all pieces."""
        self.let_go(len(self._removed) + len(self._dropped))
        while self._pieces:
            self._pieces.popitem()[1].close()

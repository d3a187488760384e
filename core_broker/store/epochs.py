"""The epochs of a commit log: which master wrote which range. Pure.

    epoch 1   0 … 499     epoch 3   500 … 899      an epoch begins with each elected master

An epoch ends where the next one begins; the last one is open. Two logs are equal up to the end of
the newest epoch that both have with the same start, so a rejoining broker truncates its log there.
Compatible with RocketMQ's EpochFileCache, with one repair: RocketMQ refuses an epoch that begins
where an older empty one begins, and then writes messages of the new epoch under the old number;
here the new epoch takes the place of the empty one.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

#: End of an epoch that is still written: the largest signed 64-bit number.
OPEN_END = 2**63 - 1
#: Largest epoch: a signed 32-bit number.
EPOCH_MAX = 2**31 - 1
#: Epochs kept; the oldest ones are dropped. A cluster has one election per epoch.
EPOCHS_MAX = 10_000
#: Result of `consistent_point` for logs without a common epoch.
NO_POINT = -1


class EpochEntry(NamedTuple):
    """One epoch: all bytes from `start_offset` to before `end_offset`."""

    epoch: int
    start_offset: int
    end_offset: int = OPEN_END


class EpochCache:
    """The epochs of one log, oldest first: epochs and starts increase.

    At most `EPOCHS_MAX` epochs are kept.
    """

    def __init__(self, starts: Iterable[tuple[int, int]] = ()) -> None:
        """Start with epochs and their first offsets; raises ValueError unless both increase."""
        self._starts: list[tuple[int, int]] = []
        for epoch, start in starts:
            if not self.append(epoch, start):
                raise ValueError(f"epoch {epoch} cannot begin at offset {start}")

    def __len__(self) -> int:
        return len(self._starts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EpochCache) and self._starts == other._starts

    __hash__ = None  # type: ignore[assignment] # the cache changes

    @property
    def starts(self) -> list[tuple[int, int]]:
        """Epochs and their first offsets."""
        return list(self._starts)

    @property
    def last_epoch(self) -> int:
        """The newest epoch, -1 without one."""
        return self._starts[-1][0] if self._starts else -1

    def entries(self, end: int = OPEN_END) -> list[EpochEntry]:
        """Return the epochs of a log that ends at `end`; those that begin behind are left out."""
        return list(self._entries(end))

    def _entries(self, end: int) -> Iterator[EpochEntry]:
        known = [each for each in self._starts if each[1] <= end]
        ends = [start for _, start in known[1:]] + [end]
        for (epoch, start), stop in zip(known, ends, strict=False):
            yield EpochEntry(epoch, start, stop)

    def at(self, offset: int) -> EpochEntry | None:
        """Return the epoch that wrote the byte at an offset; None before the first epoch."""
        number = bisect_right(self._starts, offset, key=_start_of)
        if not number:
            return None
        end = self._starts[number][1] if number < len(self._starts) else OPEN_END
        return EpochEntry(*self._starts[number - 1], end)

    def get(self, epoch: int) -> EpochEntry | None:
        """Return one epoch; None when unknown."""
        return next((each for each in self._entries(OPEN_END) if each.epoch == epoch), None)

    def append(self, epoch: int, start: int) -> bool:
        """Begin an epoch at an offset; False when it is not newer, or begins before the last one.

        An epoch that begins where the last one begins takes its place: the last one is empty.
        """
        if not (0 <= epoch <= EPOCH_MAX and 0 <= start < OPEN_END):
            return False
        if self._starts:
            last_epoch, last_start = self._starts[-1]
            if epoch <= last_epoch or start < last_start:
                return False
            if start == last_start:
                self._starts.pop()
        self._starts.append((epoch, start))
        del self._starts[:-EPOCHS_MAX]
        return True

    def truncate_suffix(self, offset: int) -> bool:
        """Drop the epochs that begin at or behind an offset; True when any did."""
        return self._keep([each for each in self._starts if each[1] < offset])

    def truncate_suffix_by_epoch(self, epoch: int) -> bool:
        """Drop this epoch and all newer ones; True when there was any."""
        return self._keep([each for each in self._starts if each[0] < epoch])

    def truncate_prefix(self, offset: int) -> bool:
        """Drop the epochs that end at or before an offset; True when any did.

        The epoch of the offset keeps its start, by which other brokers recognize the epoch.
        """
        return self._keep(
            [each[:2] for each in self._entries(OPEN_END) if each.end_offset > offset]
        )

    def _keep(self, starts: list[tuple[int, int]]) -> bool:
        is_changed = starts != self._starts
        self._starts = starts
        return is_changed


def _start_of(entry: tuple[int, int]) -> int:
    return entry[1]


def consistent_point(own: EpochCache, own_end: int, master: EpochCache, master_end: int) -> int:
    """Return the offset up to which two logs are equal; NO_POINT without a common epoch.

    The newest own epoch that the master has with the same start decides: both logs are equal up to
    its smaller end. Offsets are the ends of the logs, bytes.
    """
    known = {each[:2]: each.end_offset for each in master.entries(master_end)}
    for entry in reversed(own.entries(own_end)):
        end = known.get(entry[:2])
        if end is not None:
            return min(entry.end_offset, end)
    return NO_POINT

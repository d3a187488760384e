"""The index of a file of events: which row groups have events of a message.

The index of `x.parquet` is `x.npy`: two rows of 64-bit numbers, the hashes of message ids in
ascending order, and the row group of each. A search reads some pages of the index, not the index.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


def index_of(file: Path) -> Path:
    """The path of the index of a Parquet file."""
    return file.with_suffix(".npy")


def write_index(file: Path, groups: "Sequence[NDArray[Any]]") -> None:
    """Write the index of `file`. `groups` are the distinct hashes of each row group, in order."""
    import numpy

    hashes = numpy.concatenate(groups)
    numbers = numpy.repeat(numpy.arange(len(groups), dtype=numpy.uint64), [*map(len, groups)])
    order = numpy.argsort(hashes, kind="stable")
    numpy.save(index_of(file), numpy.stack([hashes[order], numbers[order]]))


def hashes_in(file: Path) -> "NDArray[Any]":
    """The hashes of all message ids in `file`, in ascending order, with repetitions."""
    hashes: NDArray[Any] = _read(file)[0]
    return hashes


def row_groups_with(file: Path, wanted: "NDArray[Any]") -> list[int] | None:
    """The row groups of `file` with a message of `wanted`, distinct hashes in ascending order.

    None when the file has no index: any row group may have these messages.
    """
    import numpy

    try:
        hashes, groups = _read(file)
    except FileNotFoundError:
        return None
    if len(wanted) < len(hashes):
        begins = numpy.searchsorted(hashes, wanted, "left")
        ends = numpy.searchsorted(hashes, wanted, "right")
        spans = numpy.flatnonzero(begins < ends).tolist()
        found = [groups[begins[place] : ends[place]] for place in spans]
        return sorted({int(group) for some in found for group in some})
    return [int(group) for group in numpy.unique(groups[is_among(hashes, wanted)])]


def is_among(hashes: "NDArray[Any]", wanted: "NDArray[Any]") -> "NDArray[Any]":
    """For each of `hashes`, whether `wanted` has it; `wanted` is in ascending order."""
    import numpy

    if not len(wanted):
        return numpy.zeros(len(hashes), bool)
    places = numpy.searchsorted(wanted, hashes)
    return wanted[numpy.minimum(places, len(wanted) - 1)] == hashes


def _read(file: Path) -> "NDArray[Any]":
    import numpy

    index: NDArray[Any] = numpy.load(index_of(file), mmap_mode="r")
    return index

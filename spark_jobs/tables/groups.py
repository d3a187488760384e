"""Vector functions on Arrow tables: sums by key, ranks and percentiles within groups."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy
import pyarrow
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyarrow import Table

MINUTE_MS: Final = 60_000


def summed(
    table: "Table", keys: Sequence[str], sums: Sequence[str], extremes: Sequence[str] = ()
) -> "Table":
    """One row per key, with the sum of each column of `sums`.

    `extremes` are a column of minima and a column of maxima, if any.
    """
    wanted = [(name, "sum") for name in sums]
    wanted += list(zip(extremes, ("min", "max"), strict=False))
    result = table.group_by(list(keys), use_threads=False).aggregate(wanted)
    names = [name.removesuffix(f"_{kind}") for name, kind in wanted]
    return result.select([*keys, *(f"{name}_{kind}" for name, kind in wanted)]).rename_columns(
        [*keys, *names]
    )


def group_ids(table: "Table", keys: Sequence[str]) -> "NDArray[numpy.int64]":
    """A number per row, equal for rows with equal keys; null is a value."""
    ids = numpy.zeros(len(table), numpy.int64)
    for name in keys:
        encoded = table.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
        ids = ids * (len(encoded.dictionary) + 1) + encoded.indices.to_numpy()
        ids = numpy.unique(ids, return_inverse=True)[1]
    return ids


def ranks(ids: "NDArray[Any]", order: "NDArray[Any]") -> "NDArray[numpy.int64]":
    """The rank of each row within its group, from 0, when rows are taken in `order`.

    `order` must keep the rows of a group together.
    """
    ordered = ids[order]
    begins = numpy.flatnonzero(numpy.diff(ordered, prepend=-1))
    lengths = numpy.diff(begins, append=len(ordered))
    found = numpy.empty(len(ids), numpy.int64)
    found[order] = numpy.arange(len(ordered)) - numpy.repeat(begins, lengths)
    return found


def percentiles(
    ids: "NDArray[Any]", values: "NDArray[Any]", counts: "NDArray[Any]", levels: Sequence[float]
) -> "tuple[NDArray[Any], list[NDArray[Any]]]":
    """The groups with values, and for each level their exact percentiles.

    A value occurs `counts` times. Percentiles are interpolated as by SQL's percentile_cont; the
    level 1 is the maximum.
    """
    order = numpy.lexsort((values, ids))
    ids, values, ends = ids[order], values[order], numpy.cumsum(counts[order])
    begins = numpy.flatnonzero(numpy.diff(ids, prepend=-1))
    before = numpy.append(0, ends)[begins]
    totals = numpy.diff(before, append=ends[-1] if len(ends) else 0)
    spread = []
    for level in levels:
        place = level * (totals - 1)
        low = numpy.floor(place)
        high = numpy.minimum(low + 1, totals - 1)
        some, more = (
            values[numpy.searchsorted(ends, before + rank, side="right")] for rank in (low, high)
        )
        spread.append(some + (more - some) * (place - low))
    return ids[begins], spread


def ints(table: "Table", name: str) -> "NDArray[Any]":
    """A column of numbers or flags; null becomes 0."""
    column = table.column(name).combine_chunks()
    if pyarrow.types.is_boolean(column.type):
        column = column.cast(pyarrow.int64())
    return pc.fill_null(column, 0).to_numpy()


def floor_to(column: Any, step: int) -> Any:
    """Times rounded down to a multiple of `step`."""
    times = column.combine_chunks().to_numpy()
    return pyarrow.array(times - times % step)

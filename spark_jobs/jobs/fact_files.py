"""The files with facts of an hour, and the rows that count."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow
import pyarrow.compute as pc
from pyarrow.parquet import ParquetFile

from trace.lake import FACTS, HourIndex, Lake, Parts

if TYPE_CHECKING:
    from pyarrow import Table

#: Rows of facts that a task reads at once. The task of an hour also judges the awaited messages in
#: pieces of at most this size; the other pieces wait compressed in a `spark.spool.Spool`.
FACTS_READ: Final = 65_536


@dataclass(frozen=True, slots=True)
class FactFile:
    """A file of facts, and the files of later runs in the same hour, which replace messages."""

    hour: HourIndex
    path: Path
    later: tuple[Path, ...]


def fact_files(lake: Lake, facts: Parts, hour: HourIndex) -> Iterator[FactFile]:
    """The files with facts of an hour."""
    runs = [lake.files(FACTS, {hour: [run]}, [hour]) for run in facts.get(hour, ())]
    for place, files in enumerate(runs):
        later = tuple(file for more in runs[place + 1 :] for file in more)
        for file in files:
            yield FactFile(hour, file, later)


def current_facts(file: FactFile) -> "Iterator[Table]":
    """The facts of a file that no later run replaced, in pieces of at most FACTS_READ rows."""
    later = [ParquetFile(path).read(columns=["msg_id"]).column("msg_id") for path in file.later]
    replaced = pyarrow.chunked_array(
        [chunk for column in later for chunk in column.chunks], pyarrow.string()
    ).unique()
    with ParquetFile(file.path) as parquet:
        for batch in parquet.iter_batches(FACTS_READ):
            facts = pyarrow.Table.from_batches([batch])
            if len(replaced):
                is_replaced = pc.is_in(facts.column("msg_id"), value_set=replaced)
                facts = facts.filter(pc.invert(is_replaced))
            yield facts

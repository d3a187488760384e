"""Output of mqstore: tables for people, one JSON value for programs."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import msgspec
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from core_broker.mqstore.dumping import DumpedItem, DumpedRecord, DumpedUnit
from core_broker.mqstore.listing import Listing
from core_broker.mqstore.repairing import Plan, Repaired
from core_broker.mqstore.report import Problem, Report

#: Line width of output to a pipe or file, characters.
WIDTH_WITHOUT_TERMINAL = 250
#: Maximum number of rows in a table of `ls`; JSON output is complete.
ROWS_MAX = 1000


class Verdict(msgspec.Struct, frozen=True, rename="camel"):
    """The outcome of `verify` in JSON."""

    folder: str
    is_clean: bool
    #: Number of all problems; `problems` holds the first --limit problems.
    problem_count: int
    problems: list[Problem]
    notes: list[str]
    counts: dict[str, int] = msgspec.field(name="figures")
    seconds: float


def print_json(value: object) -> None:
    """Print one value for programs."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


class _PipeConsole(Console):
    """A console that raises BrokenPipeError; rich's console would end the program with code 1."""

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError for the caller."""
        raise BrokenPipeError


def console() -> Console:
    """Return the console for tables, with colours only on a terminal."""
    width = None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL
    return _PipeConsole(width=width, highlight=False)


@contextmanager
def progress_bar(activity: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function (done, total) that moves a progress bar on the error stream's terminal.

    Without a terminal the function does nothing.
    """
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Progress(
        *columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True
    ) as bar:
        task = bar.add_task(activity, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


# -- ls --


def print_listing(listing: Listing) -> None:
    """Print the contents of a folder."""
    out = console()
    out.print(f"[bold]{escape(listing.folder)}[/]")
    end = "?" if listing.max_offset is None else str(listing.max_offset)
    out.print(f"commit log   {listing.min_offset} to {end}")
    out.print(f"broker       {_state(listing)}")
    if listing.checkpoint is not None:
        times = [f"{name[:-12]} {time_text(value)}" for name, value in listing.checkpoint.items()]
        out.print("checkpoint   " + ", ".join(times))
    for title, sizes in (("config", listing.config), ("not checked", listing.extras)):
        if sizes:
            names = [f"{escape(name)} ({size})" for name, size in sizes.items()]
            out.print(f"{title:<12} " + ", ".join(names))
    _print_segments(out, listing)
    _print_queues(out, listing)
    _print_index(out, listing)
    for name, reason in listing.unexpected.items():
        out.print(f"[yellow]{escape(name)}[/]: {escape(reason)}")


def _state(listing: Listing) -> str:
    if listing.is_in_use:
        return "running on this folder"
    if listing.has_abort:
        return "did not stop in order; the next start recovers the folder (abort)"
    return "stopped"


def _print_segments(out: Console, listing: Listing) -> None:
    rows = [
        (
            segment.file,
            segment.first_offset,
            segment.end_offset,
            time_text(segment.begin_timestamp),
            size_text(segment.size),
            size_text(segment.used),
        )
        for segment in listing.segments
    ]
    print_table(out, ("segment", "first offset", "end", "begins", "size", "on disk"), rows)


def _print_queues(out: Console, listing: Listing) -> None:
    rows = [
        (
            queue.topic,
            queue.queue_id,
            _offset_text(queue.min_offset),
            _offset_text(queue.max_offset),
            queue.files,
            size_text(queue.used),
        )
        for queue in listing.queues
    ]
    print_table(out, ("topic", "queue", "min offset", "max offset", "files", "on disk"), rows)


def _print_index(out: Console, listing: Listing) -> None:
    rows = [
        (
            file.file,
            time_text(file.begin_timestamp),
            time_text(file.end_timestamp),
            file.begin_offset,
            file.end_offset,
            file.items,
        )
        for file in listing.index
    ]
    print_table(out, ("index file", "begins", "ends", "first offset", "last offset", "items"), rows)


# -- dump --


def print_records(records: Sequence[DumpedRecord]) -> None:
    """Print each record as a block of lines."""
    out = console()
    for record in records:
        out.print(f"[bold]{record.offset}[/]  {escape(record.file)} at {record.offset_in_file}")
        queue = f"queue {record.queue_id}  offset {record.queue_offset}"
        out.print(f"  topic       {escape(record.topic)}  {queue}")
        out.print(f"  id          {escape(record.msg_id)}  offset id {record.offset_msg_id}")
        out.print(f"  stored      {time_text(record.store_timestamp)}  at {record.store_host}")
        out.print(f"  born        {time_text(record.born_timestamp)}  at {record.born_host}")
        out.print(
            f"  record      {record.size} bytes  system flag {record.sys_flag}"
            f"  flag {record.flag}  reconsumed {record.reconsume_times}"
        )
        for name, value in record.properties.items():
            out.print(f"  property    {escape(printable(name))} = {escape(printable(value))}")
        if record.body is not None:
            out.print(f"  body        {record.body_size} bytes  {escape(printable(record.body))}")


def print_units(units: Sequence[DumpedUnit]) -> None:
    """Print units of a queue."""
    rows = [
        (unit.queue_offset, unit.offset, unit.size, unit.tags_code, unit.file, unit.offset_in_file)
        for unit in units
    ]
    print_table(
        console(), ("queue offset", "offset", "size", "tags code", "file", "at"), rows, len(rows)
    )


def print_items(items: Sequence[DumpedItem]) -> None:
    """Print the chain of a key."""
    rows = [
        (
            item.item,
            item.key_hash,
            "yes" if item.is_match else "other key",
            item.offset,
            time_text(item.store_timestamp),
            item.previous,
            item.file,
            item.offset_in_file,
        )
        for item in items
    ]
    titles = ("item", "hash", "match", "offset", "stored", "previous", "file", "at")
    print_table(console(), titles, rows, len(rows))


# -- verify, repair --


def print_report(report: Report, seconds: float) -> None:
    """Print the problems, notes and counts of a verification."""
    out = console()
    rows = [(problem.file, problem.offset, problem.reason) for problem in report.problems]
    if rows:
        print_table(out, ("file", "offset", "problem"), rows, len(rows))
    if report.problem_count > len(report.problems):
        out.print(f"… and {report.problem_count - len(report.problems)} more problems (--limit)")
    for note in report.notes:
        out.print(f"Note: {escape(note)}")
    counts = report.counts
    read = size_text(counts["bytes"])
    out.print(
        f"{counts['records']} records, {counts['units']} units of {counts['queues']} queues,"
        f" {counts['indexItems']} index items, {counts['tables']} tables;"
        f" {read} in {seconds:.1f} s"
    )
    verdict = "[green]clean[/]" if report.is_clean else f"[red]{report.problem_count} problems[/]"
    out.print(f"[bold]{verdict}[/]")


def print_plan(plan: Plan) -> None:
    """Print the plan of a repair."""
    out = console()
    out.print(f"[bold]{escape(plan.folder)}[/]")
    out.print(
        f"{plan.queues} consume queues and {plan.index_files} index files would be built again"
        f" from {size_text(plan.log_bytes)} of commit log."
    )
    out.print("Nothing was changed; add --yes to build the files.")


def print_repaired(done: Repaired) -> None:
    """Print the outcome of a repair."""
    out = console()
    for text in done.damage:
        out.print(f"[yellow]{escape(text)}[/]")
    out.print(
        f"{done.queues} consume queues and {done.index_files} index files were built from"
        f" {done.records} records."
    )
    out.print(f"The old files are in {escape(done.kept_in)} until a broker starts on the folder.")


# -- parts --


def print_table(
    out: Console,
    titles: Sequence[str],
    rows: Sequence[Sequence[object]],
    rows_max: int = ROWS_MAX,
) -> None:
    """Print a table with right-aligned numbers; print nothing for no rows."""
    if not rows:
        return
    table = Table(box=box.SIMPLE, pad_edge=False)
    for title, cell in zip(titles, rows[0], strict=True):
        is_number = isinstance(cell, int)
        table.add_column(
            title, justify="right" if is_number else "left", no_wrap=is_number, overflow="fold"
        )
    for row in rows[:rows_max]:
        table.add_row(*(escape(printable(str(cell))) for cell in row))
    out.print(table)
    if len(rows) > rows_max:
        out.print(f"… and {len(rows) - rows_max} more; --output json has all")


def printable(text: str) -> str:
    """Return text with control characters, which could steer a terminal, as escapes."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def time_text(timestamp_ms: int | None) -> str:
    """Return a timestamp in local time, `-` for none."""
    if timestamp_ms is None or timestamp_ms <= 0:
        return "-"
    seconds, ms = divmod(timestamp_ms, 1000)
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds)) + f".{ms:03d}"
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)


def size_text(size: int) -> str:
    """Return a size in bytes with a binary unit."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def _offset_text(offset: int | None) -> object:
    return "?" if offset is None else offset

"""The command line of mqstore: options, error texts and exit codes.

A command is a function of a StoreFolder, the Sizes of its files and the command's own options; the
function returns an exit code. `_store_command` adds the common options, opens the folder and turns
errors into one line on the error stream and an exit code.
"""

import os
import sys
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click

from core_broker.errors import GantryError
from core_broker.mqstore import printing
from core_broker.mqstore.dumping import COUNT_MAX, BodyForm, Dumper, NotFound
from core_broker.mqstore.folder import StoreFolder
from core_broker.mqstore.listing import list_folder
from core_broker.mqstore.log_view import Progress
from core_broker.mqstore.repairing import plan, repair
from core_broker.mqstore.report import PROBLEMS_SHOWN, escaped
from core_broker.mqstore.sizes import (
    ITEMS_KEY,
    LOG_PATH_KEY,
    QUEUE_KEY,
    SEGMENT_KEY,
    SLOTS_KEY,
    Sizes,
    find_sizes,
    read_settings,
)
from core_broker.mqstore.verifying import verify

EXIT_CLEAN: Final = 0
EXIT_PROBLEMS: Final = 1
EXIT_MISUSE: Final = 2
#: The exit code of a shell after Ctrl-C.
EXIT_INTERRUPTED: Final = 130

#: Upper bound of --limit, problems.
LIMIT_MAX: Final = 100_000
#: Upper bound of --body-bytes, bytes.
BODY_BYTES_MAX: Final = 4 * 1024 * 1024
COUNT_DEFAULT: Final = 20
BODY_BYTES_DEFAULT: Final = 256
_SIZE_OPTIONS: Final = {
    SEGMENT_KEY: "--mapped-file-size-commit-log",
    QUEUE_KEY: "--mapped-file-size-consume-queue",
    SLOTS_KEY: "--max-hash-slot-num",
    ITEMS_KEY: "--max-index-num",
}
_EPILOG: Final = "Exit codes: 0 in order, 1 problems found or nothing matches, 2 misuse."


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; raise SystemExit for a wrong command line."""
    try:
        code: int = cli.main(args=argv, prog_name="mqstore", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    return code


@click.group(epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """List, dump, verify or repair a store folder of Gantry or RocketMQ."""


class _NoStore(GantryError):
    """DIR has no commit log, no consume queues and no index."""


# -- options and errors of all commands --


def _store_command(
    name: str, summary: str, check: Callable[..., None] | None = None
) -> Callable[[Callable[..., int]], click.Command]:
    """Make a command of a function (folder, sizes, *, as_json, own options) -> exit code.

    `check` gets the command's own options before the folder is opened, and raises click.UsageError.
    """

    def make(function: Callable[..., int]) -> click.Command:
        def callback(root: Path, conf: Path | None, output: str, **options: Any) -> int:
            overrides = {key: options.pop(key) for key in (*_SIZE_OPTIONS, LOG_PATH_KEY)}
            if check is not None:
                check(**options)
            try:
                folder, sizes = _open(root, conf, overrides)
                code = function(folder, sizes, as_json=output == "json", **options)
                sys.stdout.flush()
            except NotFound as error:
                sys.stderr.write(f"mqstore: {escaped(error)}\n")
                return EXIT_PROBLEMS
            except BrokenPipeError:
                # The reader of the output has closed the pipe: a flush at exit must not fail again.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return EXIT_CLEAN
            except KeyboardInterrupt:
                return EXIT_INTERRUPTED
            except (GantryError, OSError) as error:
                sys.stderr.write(f"mqstore: {escaped(error)}\n")
                return EXIT_MISUSE
            return code

        own = list(reversed(getattr(function, "__click_params__", [])))
        made = click.Command(
            name, params=[*_common_parameters(), *own], callback=callback, help=summary
        )
        cli.add_command(made)
        return made

    return make


def _common_parameters() -> list[click.Parameter]:
    path = click.Path(path_type=Path)
    return [
        click.Argument(["root"], type=path, metavar="DIR"),
        click.Option(["conf", "-c"], type=path, metavar="FILE", help="read a broker.conf"),
        click.Option(["--output"], type=click.Choice(["table", "json"]), default="table"),
        click.Option(
            [LOG_PATH_KEY, "--store-path-commit-log"], metavar="DIR", help="the commit log"
        ),
        *(
            click.Option([key, option], metavar="N", help=f"{key}; default: by the file sizes")
            for key, option in _SIZE_OPTIONS.items()
        ),
    ]


def _open(
    root: Path, conf: Path | None, overrides: dict[str, str | None]
) -> tuple[StoreFolder, Sizes]:
    settings = read_settings(conf, overrides)
    log_path = settings.get(LOG_PATH_KEY)
    folder = StoreFolder(root, Path(log_path) if log_path else None)
    if not folder.is_store():
        raise _NoStore(f"{root} is no store folder: commitlog, consumequeue and index are missing")
    return folder, find_sizes(folder, settings)


# -- commands --


@_store_command("ls", "List the contents of the store folder DIR, its storePathRootDir.")
def ls(folder: StoreFolder, sizes: Sizes, *, as_json: bool) -> int:
    listing = list_folder(folder, sizes)
    if as_json:
        printing.print_json(listing)
    else:
        printing.print_listing(listing)
    return EXIT_CLEAN


def _check_query(
    *,
    units: bool,
    chain: bool,
    id_: str | None,
    topic: str | None,
    queue: int | None,
    key: str | None,
    **_others: Any,
) -> None:
    if units + chain + (id_ is not None) > 1:
        raise click.UsageError("only one of --units, --chain and --id is possible")
    if units and (topic is None or queue is None):
        raise click.UsageError("--units needs --topic and --queue")
    if chain and key is None:
        raise click.UsageError("--chain needs --topic and --key")
    if key is not None and topic is None:
        raise click.UsageError("--key needs --topic")


@_store_command(
    "dump", "Print records, units of a queue, or the index chain of a key.", _check_query
)
@click.option("--units", is_flag=True, help="units of --topic and --queue")
@click.option("--chain", is_flag=True, help="index items of --topic and --key")
@click.option("--id", "id_", help="the record of an offset id, or with --topic of a unique key")
@click.option("--topic")
@click.option("--queue", type=click.IntRange(0, 2**31 - 1), metavar="ID")
@click.option("--key", help="a key or unique key of --topic")
@click.option(
    "--offset",
    type=click.IntRange(0, 2**63 - 1),
    metavar="N",
    help="first offset: of the log, with --units of the queue",
)
@click.option(
    "--count",
    type=click.IntRange(1, COUNT_MAX),
    default=COUNT_DEFAULT,
    metavar="N",
    help=f"maximum number of results ({COUNT_DEFAULT})",
)
@click.option("--body", type=click.Choice(["text", "hex", "none"]), default="text")
@click.option(
    "--body-bytes",
    type=click.IntRange(0, BODY_BYTES_MAX),
    default=BODY_BYTES_DEFAULT,
    metavar="N",
    help=f"maximum bytes of a body ({BODY_BYTES_DEFAULT})",
)
def dump(
    folder: StoreFolder,
    sizes: Sizes,
    *,
    as_json: bool,
    body: BodyForm,
    body_bytes: int,
    **query: Any,
) -> int:
    dumper = Dumper(folder, sizes, body_form=body, body_bytes=body_bytes)
    with printing.progress_bar("reading") as progress:
        results, show = _query(dumper, progress, **query)
    for note in dumper.notes:
        sys.stderr.write(f"{note}\n")
    if as_json:
        printing.print_json(results)
    else:
        show()
    return EXIT_CLEAN if results else EXIT_PROBLEMS


def _query(
    dumper: Dumper,
    progress: Progress,
    *,
    units: bool,
    chain: bool,
    id_: str | None,
    topic: Any,
    queue: Any,
    key: Any,
    offset: int | None,
    count: int,
) -> tuple[Sequence[object], Callable[[], None]]:
    """Return the selected records, units or index items, and the function that prints them.

    `_check_query` has checked the presence of topic, queue and key for the selection.
    """
    if units:
        queue_units = dumper.units(topic, queue, offset, count)
        return queue_units, lambda: printing.print_units(queue_units)
    if chain:
        items = list(islice(dumper.chain(topic, key), count))
        return items, lambda: printing.print_items(items)
    if id_ is not None:
        records = dumper.by_id(id_, topic, count)
    elif key is not None:
        records = dumper.by_key(topic, key, count)
    else:
        records = dumper.range(offset or 0, count, topic, queue, progress)
    return records, lambda: printing.print_records(records)


@_store_command("verify", "Check every record, unit and index item.")
@click.option(
    "--limit",
    type=click.IntRange(0, LIMIT_MAX),
    default=PROBLEMS_SHOWN,
    metavar="N",
    help=f"maximum number of problems to list; all are counted ({PROBLEMS_SHOWN})",
)
def verify_folder(folder: StoreFolder, sizes: Sizes, *, as_json: bool, limit: int) -> int:
    started = time.monotonic()
    with printing.progress_bar("verifying") as progress:
        report = verify(folder, sizes, limit=limit, progress=progress)
    seconds = time.monotonic() - started
    if as_json:
        printing.print_json(
            printing.Verdict(
                escaped(folder.root),
                report.is_clean,
                report.problem_count,
                report.problems,
                report.notes,
                dict(report.counts),
                round(seconds, 3),
            )
        )
    else:
        printing.print_report(report, seconds)
    return EXIT_CLEAN if report.is_clean else EXIT_PROBLEMS


@_store_command("repair", "Build queues and index again, from the commit log.")
@click.option("--yes", is_flag=True, help="build them; without --yes only print the plan")
def repair_folder(folder: StoreFolder, sizes: Sizes, *, as_json: bool, yes: bool) -> int:
    if not yes:
        intended = plan(folder, sizes)
        if as_json:
            printing.print_json(intended)
        else:
            printing.print_plan(intended)
        return EXIT_CLEAN
    with printing.progress_bar("building") as progress:
        done = repair(folder, sizes, progress)
    if as_json:
        printing.print_json(done)
    else:
        printing.print_repaired(done)
    return EXIT_CLEAN

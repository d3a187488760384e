"""`python -m core_broker.mqstore`, or `mqstore`: looks into a store folder of Gantry or RocketMQ.

    mqstore ls DIR          what is in it
    mqstore dump DIR        records, units of a queue, the index chain of a key
    mqstore verify DIR      everything against the commit log
    mqstore repair DIR      consume queues and index again, from the commit log

Exit codes: 0 in order, 1 problems were found (verify) or nothing matches (dump), 2 wrong options,
a folder that cannot be read, or one that is in use (repair).
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from core_broker.errors import GantryError
from core_broker.mqstore import printing
from core_broker.mqstore.dumping import COUNT_MAX, Dumper, NothingThere
from core_broker.mqstore.folder import StoreFolder
from core_broker.mqstore.listing import list_folder
from core_broker.mqstore.repairing import plan, repair
from core_broker.mqstore.report import PROBLEMS_SHOWN, visible
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
from core_broker.mqstore.verifying import Progress, verify

EXIT_CLEAN = 0
EXIT_PROBLEMS = 1
EXIT_MISUSE = 2
#: As a shell has it for Ctrl-C.
EXIT_INTERRUPTED = 130

#: So many problems can be asked for.
LIMIT_MAX = 100_000
BODY_BYTES_MAX = 4 * 1024 * 1024
_SIZE_OPTIONS = {
    SEGMENT_KEY: "--mapped-file-size-commit-log",
    QUEUE_KEY: "--mapped-file-size-consume-queue",
    SLOTS_KEY: "--max-hash-slot-num",
    ITEMS_KEY: "--max-index-num",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    parser = _parser()
    options = parser.parse_args(argv)
    _check(parser, options)
    try:
        folder, sizes = _open(options)
        run: Callable[[argparse.Namespace, StoreFolder, Sizes], int] = options.run
        code = run(options, folder, sizes)
        sys.stdout.flush()
    except NothingThere as error:
        sys.stderr.write(f"mqstore: {visible(error)}\n")
        return EXIT_PROBLEMS
    except BrokenPipeError:
        # The reader of the output has seen enough; nothing must be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_CLEAN
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except (GantryError, OSError) as error:
        sys.stderr.write(f"mqstore: {visible(error)}\n")
        return EXIT_MISUSE
    return code


def _open(options: argparse.Namespace) -> tuple[StoreFolder, Sizes]:
    given = {name: getattr(options, name) for name in (*_SIZE_OPTIONS, LOG_PATH_KEY)}
    settings = read_settings(options.conf, given)
    log_path = settings.get(LOG_PATH_KEY)
    folder = StoreFolder(options.dir, Path(log_path) if log_path else None)
    if not folder.is_store():
        raise _NoStore(f"{options.dir} is no store folder: it has neither commitlog nor queues")
    return folder, find_sizes(folder, settings)


class _NoStore(GantryError):
    """There is nothing to look at."""


# -- commands --


def _ls(options: argparse.Namespace, folder: StoreFolder, sizes: Sizes) -> int:
    listing = list_folder(folder, sizes)
    if options.output == "json":
        printing.print_json(listing)
    else:
        printing.print_listing(listing)
    return EXIT_CLEAN


def _dump(options: argparse.Namespace, folder: StoreFolder, sizes: Sizes) -> int:
    dumper = Dumper(folder, sizes, body_form=options.body, body_bytes=options.body_bytes)
    with printing.progress_bar("reading") as progress:
        found, show = _look_up(options, dumper, progress)
    for note in dumper.notes:
        sys.stderr.write(f"{note}\n")
    if options.output == "json":
        printing.print_json(found)
    else:
        show()
    return EXIT_CLEAN if found else EXIT_PROBLEMS


def _look_up(
    options: argparse.Namespace, dumper: Dumper, progress: Progress
) -> tuple[Sequence[object], Callable[[], None]]:
    """Return what was asked for, and what prints it for people."""
    topic, count = options.topic, options.count
    if options.units:
        units = dumper.units(topic, options.queue, options.offset, count)
        return units, lambda: printing.print_units(units)
    if options.chain:
        items = list(islice(dumper.chain(topic, options.key), count))
        return items, lambda: printing.print_items(items)
    if options.id is not None:
        records = dumper.by_id(options.id, topic, count)
    elif options.key is not None:
        records = dumper.by_key(topic, options.key, count)
    else:
        records = dumper.range(options.offset or 0, count, topic, options.queue, progress)
    return records, lambda: printing.print_records(records)


def _verify(options: argparse.Namespace, folder: StoreFolder, sizes: Sizes) -> int:
    started = time.monotonic()
    with printing.progress_bar("verifying") as progress:
        report = verify(folder, sizes, limit=options.limit, progress=progress)
    seconds = time.monotonic() - started
    if options.output == "json":
        printing.print_json(
            printing.Verdict(
                visible(folder.root),
                report.is_clean,
                report.count,
                report.problems,
                report.notes,
                dict(report.figures),
                round(seconds, 3),
            )
        )
    else:
        printing.print_report(report, seconds)
    return EXIT_CLEAN if report.is_clean else EXIT_PROBLEMS


def _repair(options: argparse.Namespace, folder: StoreFolder, sizes: Sizes) -> int:
    is_json = options.output == "json"
    if not options.yes:
        intended = plan(folder, sizes)
        if is_json:
            printing.print_json(intended)
        else:
            printing.print_plan(intended)
        return EXIT_CLEAN
    with printing.progress_bar("building") as progress:
        done = repair(folder, sizes, progress)
    if is_json:
        printing.print_json(done)
    else:
        printing.print_repaired(done)
    return EXIT_CLEAN


# -- options --


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mqstore",
        description="Looks into a store folder of Gantry or RocketMQ, verifies and repairs it.",
        epilog="Exit codes: 0 in order, 1 problems found or nothing matches, 2 misuse.",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    common = _common_options()

    def command(name: str, run: object, text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, parents=[common], help=text, description=text)
        made.set_defaults(run=run)
        return made

    command("ls", _ls, "Show what is in a store folder.")
    _add_dump_options(command("dump", _dump, "Show records, units of a queue, or an index chain."))
    checking = command("verify", _verify, "Check every record, unit and index item.")
    checking.add_argument(
        "--limit",
        type=_number(0, LIMIT_MAX),
        default=PROBLEMS_SHOWN,
        help=f"show so many problems and count the rest ({PROBLEMS_SHOWN})",
    )
    building = command("repair", _repair, "Build queues and index again, from the commit log.")
    building.add_argument("--yes", action="store_true", help="do it; without, say what it would do")
    return parser


def _common_options() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("dir", type=Path, metavar="DIR", help="the folder, storePathRootDir")
    common.add_argument("-c", dest="conf", type=Path, metavar="FILE", help="read a broker.conf")
    common.add_argument("--output", choices=("table", "json"), default="table")
    common.add_argument("--store-path-commit-log", dest=LOG_PATH_KEY, metavar="DIR")
    for name, option in _SIZE_OPTIONS.items():
        common.add_argument(option, dest=name, metavar="N", help=f"{name}, if not as it looks")
    return common


def _add_dump_options(dump: argparse.ArgumentParser) -> None:
    what = dump.add_mutually_exclusive_group()
    what.add_argument("--units", action="store_true", help="units of --topic and --queue")
    what.add_argument("--chain", action="store_true", help="index items of --topic and --key")
    what.add_argument("--id", help="the record of an offset id, or with --topic of a unique key")
    dump.add_argument("--topic")
    dump.add_argument("--queue", type=_number(0, 2**31 - 1), metavar="ID")
    dump.add_argument("--key", help="a key or unique key of --topic")
    dump.add_argument(
        "--offset",
        type=_number(0, 2**63 - 1),
        metavar="N",
        help="begin here: an offset of the log, with --units one of the queue",
    )
    dump.add_argument("--count", type=_number(1, COUNT_MAX), default=20, metavar="N", help="(20)")
    dump.add_argument("--body", choices=("text", "hex", "none"), default="text")
    dump.add_argument(
        "--body-bytes", type=_number(0, BODY_BYTES_MAX), default=256, metavar="N", help="(256)"
    )


def _number(low: int, high: int) -> Callable[[str], int]:
    def convert(text: str) -> int:
        number = int(text)
        if not low <= number <= high:
            raise argparse.ArgumentTypeError(f"it must be from {low} to {high}")
        return number

    convert.__name__ = "number"
    return convert


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Refuse combinations that cannot mean anything; leaves with exit code 2."""
    if options.run is not _dump:
        return
    if options.units and (options.topic is None or options.queue is None):
        parser.error("--units needs --topic and --queue")
    if options.chain and options.key is None:
        parser.error("--chain needs --topic and --key")
    if options.key is not None and options.topic is None:
        parser.error("--key needs --topic")


if __name__ == "__main__":
    sys.exit(main())

"""The command line of mqbroker and mqnamesrv, with RocketMQ's option names.

    options.py        what most starts have: nothing but `-c FILE` and `-n ADDR`
    command_line.py   every option, by click

A start whose options need no parser does not import click.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """Options of one start; at most one of the three print-outs is set."""

    settings_file: str | None
    namesrv_addr: str | None
    prints_all: bool = False
    prints_important: bool = False
    checks: bool = False


def parse_options(program: str, argv: Sequence[str]) -> Options:
    """Return the options.

    `-h` prints the help and raises SystemExit(0); a wrong option prints the usage on stderr and
    raises SystemExit(2).
    """
    simple = _of_pairs(argv)
    if simple is not None:
        return simple
    from core_broker.config.command_line import parsed

    return Options(**parsed(program, argv))


def _of_pairs(argv: Sequence[str]) -> Options | None:
    """Return the options of a command line with `-c FILE` and `-n ADDR` only; None otherwise."""
    names, values = argv[::2], argv[1::2]
    if len(names) != len(values) or any(value.startswith("-") for value in values):
        return None
    if not {"-c", "-n"}.issuperset(names):
        return None
    # The last one counts.
    found = dict(zip(names, values, strict=True))
    return Options(found.get("-c"), found.get("-n"))

"""Description of one program to run."""

import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

#: Readiness probe of a running program; returns False, without an exception, when not ready.
Probe = Callable[[], Awaitable[bool]]

IMPORTANT = re.compile(r"\b(WARN|WARNING|ERROR|CRITICAL|FATAL)\b|^\w*(Error|Exception)\b", re.A)
EVERYTHING = re.compile("")

READY_TIMEOUT_S = 60.0
STOP_GRACE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One program and the rules of start, readiness and stop.

    A program is ready when `probe` returns True, when an output line matches `ready_line`, or, for
    a step that runs `once`, after exit code 0. A program starts when all programs in `after` are
    ready. Programs stop in order of `stop_rank`, programs of the same rank together.
    """

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    probe: Probe | None = None
    ready_line: re.Pattern[str] | None = None
    once: bool = False
    after: tuple[str, ...] = ()
    needed: bool = False  # a failure of the program fails the start
    when_off: str = ""  # functions missing without the program, as a sentence
    hint: str = ""  # where to look when the program does not start, as a sentence
    important: re.Pattern[str] = IMPORTANT  # lines worth showing on the terminal at once
    private_output: bool = False  # output goes to the terminal, not to the log
    stop_rank: int = 0
    ready_timeout_s: float = READY_TIMEOUT_S
    stop_grace_s: float = STOP_GRACE_S


def python(*arguments: str) -> tuple[str, ...]:
    """Return the command of a Python program."""
    return (sys.executable, "-u", *arguments)

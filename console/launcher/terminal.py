"""Terminal output of `up`: whole lines, flushed at once."""

import os
import sys
import time
from collections.abc import Callable

RELAYED_LINES_PER_MINUTE = 20  # limit per program; the log has all lines
MINUTE_S = 60.0

Say = Callable[[str], None]


def say(line: str) -> None:
    """Print and flush one line. A closed pipe must not stop the programs."""
    try:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Relay:
    """Prints a program's important lines with the program's name, limited per minute."""

    def __init__(self, name: str, say: Say, monotonic: Callable[[], float] = time.monotonic):
        self._name = name
        self._say = say
        self._monotonic = monotonic
        self._minute_began = monotonic()
        self._count = 0

    def __call__(self, line: str) -> None:
        now = self._monotonic()
        if now - self._minute_began >= MINUTE_S:
            self._minute_began, self._count = now, 0
        self._count += 1
        if self._count <= RELAYED_LINES_PER_MINUTE:
            self._say(f"[{self._name}] {line}")
        elif self._count == RELAYED_LINES_PER_MINUTE + 1:
            self._say(f"[{self._name}] … more lines in the log")

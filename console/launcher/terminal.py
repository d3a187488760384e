"""What `up` says to the person at the terminal: whole lines, at once, from one place."""

import os
import sys
import time
from collections.abc import Callable

RELAYED_LINES_PER_MINUTE = 20  # of one program; the rest is in its log only
MINUTE_S = 60.0

Say = Callable[[str], None]


def say(line: str) -> None:
    """Print one line now. A reader that went away must not stop the programs."""
    try:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Relay:
    """Passes a program's important lines on, prefixed with its name and bounded per minute."""

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
            self._say(f"[{self._name}] … more of these in its log")

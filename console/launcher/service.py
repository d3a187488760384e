"""What the launcher knows about one program before it runs."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

#: Asks a running program whether it is ready; never raises for "not yet".
Probe = Callable[[], Awaitable[bool]]

IMPORTANT = re.compile(r"\b(WARN|WARNING|ERROR|CRITICAL|FATAL)\b|^\w*(Error|Exception)\b", re.A)
EVERYTHING = re.compile("")

READY_TIMEOUT_S = 60.0
STOP_GRACE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One program of a Gantry.

    It is ready when `probe` says yes, or a line with `ready_line` appears, or, for a step that
    runs `once`, when it ended with code 0. It starts when all of `after` are ready. Programs stop
    in order of `stop_rank`, those of one rank together.
    """

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    probe: Probe | None = None
    ready_line: re.Pattern[str] | None = None
    once: bool = False
    after: tuple[str, ...] = ()
    needed: bool = False  # without it the start has failed
    when_off: str = ""  # what does not work without it, as a sentence
    hint: str = ""  # what to look at when it does not start, as a sentence
    important: re.Pattern[str] = IMPORTANT  # lines worth showing on the terminal at once
    private_output: bool = False  # shown on the terminal, kept out of the log
    stop_rank: int = 0
    ready_timeout_s: float = READY_TIMEOUT_S
    stop_grace_s: float = STOP_GRACE_S

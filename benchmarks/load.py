"""Load on a broker: what each scenario asks, and the load generator that asks it.

The generator is loadgen.c, one thread with one epoll, compiled on first use; it needs a C compiler.
Requests are made here once and sent as they are, with another unique key each.
"""

import json
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.requests import QUEUES, Template, batch_template, pull_template, send_template

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path(__file__).with_name("loadgen.c")
PROGRAM = ROOT / "var" / "bench" / "loadgen"
#: More than any run sends.
MESSAGES_MAX = 10**12

_LENGTHS = struct.Struct(">II")


@dataclass(frozen=True, slots=True)
class Scenario:
    """How many connections ask what, and how many requests each keeps in flight."""

    connections: int
    in_flight: int
    template: Callable[[int], Template]
    templates: int = QUEUES


SCENARIOS = {
    "send-64x1": Scenario(64, 1, send_template),
    "send-1x64": Scenario(1, 64, send_template),
    "send-16x16": Scenario(16, 16, send_template),
    "batch-32": Scenario(16, 1, lambda number: batch_template(number, 32)),
    "pull-32": Scenario(16, 1, pull_template),
    "topics-1000": Scenario(64, 1, lambda number: send_template(number, f"Bench-{number}"), 1_000),
}
#: The same questions to a broker with other settings.
VARIANTS = {
    "sync-64x1": ("send-64x1", "flushDiskType=SYNC_FLUSH\n"),
    "plain-64x1": ("send-64x1", "kernelEnable=false\n"),
}


def compile_generator() -> Path:
    """Compile the generator unless it is newer than its source; exits when there is no compiler."""
    if not PROGRAM.exists() or PROGRAM.stat().st_mtime < SOURCE.stat().st_mtime:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            sys.exit(
                "The load generator is a C program: install a C compiler (apt-get install gcc)."
            )
        PROGRAM.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([compiler, "-O2", "-o", PROGRAM, SOURCE], check=True)
    return PROGRAM


def run(
    scenario: Scenario,
    addr: str,
    *,
    seconds: float,
    messages_max: int = MESSAGES_MAX,
    rate: int = 0,
) -> dict[str, Any]:
    """Load a broker until the time or the number of messages is reached, and return the figures.

    With a rate, in requests a second, it is an open loop; see loadgen.c. Exits when the broker
    refuses anything.
    """
    return begin(scenario, addr, seconds=seconds, messages_max=messages_max, rate=rate).figures()


class Running:
    """A load generator at work."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def figures(self) -> dict[str, Any]:
        """Wait for its end and return what it measured."""
        output, errors = self._process.communicate()
        if self._process.returncode != 0:
            sys.exit(f"The load generator broke:\n{errors[-2000:].decode(errors='replace')}")
        figures: dict[str, Any] = json.loads(output)
        return figures


def begin(
    scenario: Scenario,
    addr: str,
    *,
    seconds: float,
    messages_max: int = MESSAGES_MAX,
    rate: int = 0,
) -> Running:
    """Start to load a broker; parameters as in `run`."""
    host, _, port = addr.rpartition(":")
    shape = (scenario.connections, scenario.in_flight, seconds, messages_max, rate)
    process = subprocess.Popen(
        [compile_generator(), host, port, *map(str, shape)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    # One that ends before it has read everything says why in its figures.
    with suppress(BrokenPipeError):
        for each in range(scenario.templates):
            process.stdin.write(_packed(scenario.template(each)))
        process.stdin.close()
    process.stdin = None
    return Running(process)


def _packed(template: Template) -> bytes:
    return _LENGTHS.pack(len(template.frame), template.messages) + template.frame

"""Load scenarios, and the load generator that runs them.

The generator is loadgen.c, one thread with one epoll, compiled on first use; it needs a C compiler,
and for TLS the headers of OpenSSL. This module builds the requests once; the generator replaces
only their unique keys, and signs.
"""

import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.c_programs import compiled
from benchmarks.requests import (
    QUEUES,
    Template,
    batch_template,
    pull_template,
    send_template,
    signed_send_template,
)

SOURCE = Path(__file__).with_name("loadgen.c")
#: Options of the compiler for a generator with TLS.
TLS_OPTIONS = ("-DTLS", "-lssl", "-lcrypto")
#: Maximum messages of a run: no limit in practice.
MESSAGES_MAX = 10**12

_LENGTHS = struct.Struct(">II")


@dataclass(frozen=True, slots=True)
class Scenario:
    """Number of connections, their requests, and requests in flight per connection."""

    connections: int
    in_flight: int
    template: Callable[[int], Template]
    templates: int = QUEUES
    #: All connections have TLS 1.3, with the cipher of transport.h.
    tls: bool = False


SCENARIOS = {
    "send-64x1": Scenario(64, 1, send_template),
    "send-1x64": Scenario(1, 64, send_template),
    "send-16x16": Scenario(16, 16, send_template),
    "batch-32": Scenario(16, 1, lambda number: batch_template(number, 32)),
    "pull-32": Scenario(16, 1, pull_template),
    "topics-1000": Scenario(64, 1, lambda number: send_template(number, f"Bench-{number}"), 1_000),
}
#: Signed sends, for brokers with access control.
SIGNED = {
    "signed-64x1": Scenario(64, 1, signed_send_template),
    "signed-1x64": Scenario(1, 64, signed_send_template),
}
#: Sends with TLS: every broker accepts TLS, by default with a certificate made for the run.
TLS = {
    "tls-64x1": Scenario(64, 1, send_template, tls=True),
    "tls-1x64": Scenario(1, 64, send_template, tls=True),
}
#: Signed sends with TLS.
TLS_SIGNED = {
    "tls-signed-64x1": Scenario(64, 1, signed_send_template, tls=True),
    "tls-signed-1x64": Scenario(1, 64, signed_send_template, tls=True),
}
#: Scenarios with other broker settings.
VARIANTS = {
    "sync-64x1": ("send-64x1", "flushDiskType=SYNC_FLUSH\n"),
    "plain-64x1": ("send-64x1", "kernelEnable=false\n"),
}


def compile_generator(*, tls: bool = False) -> Path:
    """Compile the generator unless the binary is newer than the source; exits without a C
    compiler, or with TLS without the headers of OpenSSL.
    """
    if not tls:
        return compiled(SOURCE, "loadgen")
    hint = " Loads with TLS need OpenSSL (apt-get install libssl-dev)."
    return compiled(SOURCE, "loadgen-tls", TLS_OPTIONS, hint)


def run(
    scenario: Scenario,
    addr: str,
    *,
    seconds: float,
    messages_max: int = MESSAGES_MAX,
    rate: int = 0,
) -> dict[str, Any]:
    """Run the load until the time or the number of messages is reached; returns the metrics.

    With a rate, requests per second, the load is an open loop; see loadgen.c. Exits when the broker
    refuses a request.
    """
    return begin(scenario, addr, seconds=seconds, messages_max=messages_max, rate=rate).figures()


class Running:
    """A running load generator."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def pin(self, cpu: int) -> None:
        """Let the generator run on one CPU only."""
        os.sched_setaffinity(self._process.pid, {cpu})

    def figures(self) -> dict[str, Any]:
        """Wait for the end of the run; returns its metrics."""
        output, errors = self._process.communicate()
        if self._process.returncode != 0:
            sys.exit(f"The load generator broke:\n{errors[-2000:].decode(errors='replace')}")
        figures: dict[str, Any] = json.loads(output)
        return figures

    def stop(self) -> None:
        """End the run without metrics; nothing happens after the end of the run."""
        self._process.kill()
        self._process.wait()


def begin(
    scenario: Scenario,
    addr: str,
    *,
    seconds: float,
    messages_max: int = MESSAGES_MAX,
    rate: int = 0,
) -> Running:
    """Start a load; parameters as in `run`."""
    host, _, port = addr.rpartition(":")
    shape = (scenario.connections, scenario.in_flight, seconds, messages_max, rate)
    process = subprocess.Popen(
        [compile_generator(tls=scenario.tls), host, port, *map(str, shape)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    # a generator that exits early reports the reason in its metrics
    with suppress(BrokenPipeError):
        for each in range(scenario.templates):
            process.stdin.write(_packed(scenario.template(each)))
        process.stdin.close()
    process.stdin = None
    return Running(process)


def _packed(template: Template) -> bytes:
    head = _LENGTHS.pack(len(template.frame), template.messages)
    return head + template.frame + struct.pack(">I", len(template.signing)) + template.signing

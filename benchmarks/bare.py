"""Compare sends to the broker with sends to its kernel under a bare C loop (`bare_loop.pyx`).

The difference is the cost of the broker's Python code, so everything else is equal: both servers
run side by side with their files on a memory file system where available (the disk is not under
test), and get the same number of messages from the same generator. The servers alternate, and the
order changes every round. The result is the median of the ratios of all rounds.

When the generator uses more CPU than a server, both servers wait for the generator and reach nearly
equal rates: CPU time per message is then the better measure.
"""

import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import click

from benchmarks.load import SCENARIOS, run
from benchmarks.processes import Measured, running
from benchmarks.requests import QUEUES, TOPIC
from core_broker.limits import MESSAGE_BYTES_MAX

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path(__file__).with_name("bare_loop.pyx")
BUILD = ROOT / "var" / "bench" / "bare"
#: Messages per server and round, about two seconds of load.
MESSAGES = {
    "send-64x1": 200_000,
    "send-1x64": 400_000,
    "send-16x16": 400_000,
    "batch-32": 1_000_000,
}
NAMES = tuple(MESSAGES)
ROUNDS = 7
RUN_SECONDS_MAX = 60
#: Memory file system.
MEMORY = Path("/dev/shm")
LOG_BYTES = 256 << 20
ZEROS = bytes(1 << 20)
READ_BUFFER_BYTES = 256 * 1024
HOST = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"
BORN_MS = 1_700_000_000_000


class Queue:
    """Keeps consume-queue units in memory; drops them beyond a limit."""

    def __init__(self) -> None:
        self.next_offset = 0
        self._units = bytearray()

    def take(self, units: bytes) -> None:
        """Append units."""
        self._units += units
        self.next_offset += len(units) // 20
        if len(self._units) > len(ZEROS):
            self._units.clear()


class Shell:
    """The interface of a broker for the kernel, with unlimited capacity."""

    def __init__(self, topic: Callable[[bytes, int], Any]) -> None:
        self.position = 0
        self._topic = topic

    def begin(self) -> tuple[int, int, int, float, int]:
        """Write position and limits for the sends of one event-loop iteration."""
        return self.position, LOG_BYTES, BORN_MS, 1e9, 1 << 30

    def topic(self, name: bytes) -> Any:
        """The topic of the benchmark; None for other names."""
        return self._topic(name, QUEUES) if name == TOPIC.encode() else None

    def queue(self, name: bytes, queue_id: int) -> Queue:
        """A queue of the topic."""
        return Queue()


def compile_loop() -> Any:
    """Compile the loop, unless the binary is newer than the source, and import it."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension  # type: ignore[import-untyped]
    from setuptools.command.build_ext import build_ext  # type: ignore[import-untyped]

    BUILD.mkdir(parents=True, exist_ok=True)
    extension = Extension("bare_loop", [str(SOURCE)], extra_compile_args=["-O2"])
    modules = cythonize([extension], build_dir=str(BUILD), include_path=[str(ROOT)], quiet=True)  # type: ignore[no-untyped-call]
    command = build_ext(Distribution({"name": "bare_loop", "ext_modules": modules}))
    command.build_lib = command.build_temp = str(BUILD)
    command.ensure_finalized()
    command.run()
    spec = importlib.util.spec_from_file_location(
        "bare_loop", command.get_ext_fullpath("bare_loop")
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def serve(folder: Path) -> None:
    """Run the bare loop until the process is killed; prints the port first."""
    from core_broker.config import BrokerConfig
    from core_broker.fastpath.contracts import SendSettings
    from core_broker.fastpath.templates import send_template
    from core_broker.kernel.fast_path import FastPath
    from core_broker.kernel.queues import SendTopic
    from core_broker.kernel.sends import CompiledSends
    from core_broker.message.properties import encode_properties
    from core_broker.processors.added_properties import added_properties

    log_fd = os.open(folder / "log", os.O_RDWR | os.O_CREAT)
    for offset in range(0, LOG_BYTES + len(ZEROS), len(ZEROS)):
        os.pwrite(log_fd, ZEROS, offset)
    shell = Shell(SendTopic)
    kernel = CompiledSends(shell)
    kernel.configure(
        SendSettings(
            host=HOST,
            id_prefix=HOST.hex().upper().encode(),
            added_properties=encode_properties(added_properties(BrokerConfig())),
            answer_template=send_template(BrokerConfig()),
            is_indexing=True,
            is_sync=False,
            body_bytes_max=MESSAGE_BYTES_MAX,
        )
    )
    path = FastPath(memoryview(bytearray(READ_BUFFER_BYTES)), {310: kernel, 320: kernel})
    loop = compile_loop()
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        loop.serve(listener, path, kernel, shell, log_fd, LOG_BYTES, HOST)


class Figures(NamedTuple):
    """Messages per second, and CPU time per message of server and generator."""

    rate: float
    cpu_us: float
    generator_us: float


def measure(server: Measured, name: str, addr: str, messages: int) -> Figures:
    """Run the load generator against a server once."""
    before = server.cpu_seconds()
    figures = run(SCENARIOS[name], addr, seconds=RUN_SECONDS_MAX, messages_max=messages)
    count = max(1, figures["messages"])
    cpu_us = (server.cpu_seconds() - before) * 1e6 / count
    return Figures(figures["rate"], cpu_us, figures["generator_cpu_seconds"] * 1e6 / count)


@contextmanager
def running_bare(folder: Path) -> Iterator[tuple[Measured, str]]:
    """Start the bare loop; yields the process and its address, and kills the process at the end."""
    command = [sys.executable, "-m", "benchmarks.bare", "--serve", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as server:
        assert server.stdout is not None
        try:
            yield Measured(server, 0.0), f"127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.kill()


def compare(folder: Path, rounds: int = ROUNDS, names: Sequence[str] = NAMES) -> dict[str, Any]:
    """Measure both servers alternately."""
    compile_loop()
    return {name: _compare(folder, name, rounds) for name in names}


def _compare(folder: Path, name: str, rounds: int) -> dict[str, Any]:
    runs: dict[str, list[Figures]] = {"bare": [], "broker": []}
    home = MEMORY if os.access(MEMORY, os.W_OK) else folder
    with (
        tempfile.TemporaryDirectory(dir=home) as bare_folder,
        running_bare(Path(bare_folder)) as bare,
        tempfile.TemporaryDirectory(dir=home) as broker_folder,
        running(Path(broker_folder)) as cluster,
    ):
        servers = {"bare": bare, "broker": (cluster.broker, cluster.broker_addr)}
        for number in range(rounds + 1):
            for kind in sorted(servers, reverse=bool(number % 2)):
                server, addr = servers[kind]
                figures = measure(server, name, addr, MESSAGES[name])
                if number:  # the first round is a warm-up
                    runs[kind].append(figures)
    ratios = [
        mine.rate / bare.rate for mine, bare in zip(runs["broker"], runs["bare"], strict=True)
    ]
    found: dict[str, Any] = {
        kind: {
            field: round(median(getattr(each, field) for each in all_of_it), 2)
            for field in Figures._fields
        }
        for kind, all_of_it in runs.items()
    }
    return {
        "ratio": round(median(ratios), 2),
        "ratio_min": round(min(ratios), 2),
        "ratio_max": round(max(ratios), 2),
        "cpu_ratio": round(found["bare"]["cpu_us"] / found["broker"]["cpu_us"], 2),
        "files_in": str(home),
        **found,
    }


def lines(figures: dict[str, Any]) -> Iterator[str]:
    """The results as text lines."""
    for name, each in figures.items():
        bare, broker = each["bare"], each["broker"]
        yield (
            f"{name:<12}bare {bare['rate']:>9,.0f}/s {bare['cpu_us']:>5.2f} us   broker"
            f" {broker['rate']:>9,.0f}/s {broker['cpu_us']:>5.2f} us   ratio {each['ratio']:.2f}"
            f" [{each['ratio_min']:.2f}..{each['ratio_max']:.2f}], of CPU {each['cpu_ratio']:.2f},"
            f" generator {broker['generator_us']:.2f} us"
        )


@click.command(context_settings={"show_default": True})
@click.option("--rounds", type=int, default=ROUNDS)
@click.option("--only", type=click.Choice(NAMES), multiple=True, help="Repeatable; default: all.")
@click.option("--serve", "served", type=click.Path(path_type=Path), hidden=True)
def main(rounds: int, only: tuple[str, ...], served: Path | None) -> None:
    """Measure both servers alternately and print the ratios."""
    if served is not None:
        serve(served)
        return
    BUILD.mkdir(parents=True, exist_ok=True)
    figures = compare(BUILD, rounds, only or NAMES)
    sys.stdout.write("\n".join((*lines(figures), json.dumps(figures))) + "\n")


if __name__ == "__main__":
    main()

"""`python -m benchmarks.bare`: sends to the broker, and to its kernel under a bare loop in C.

What the broker reaches of the bare loop is what its Python costs. Both run one after the other,
several rounds, on the same disk and under the same load; the median counts.
"""

import argparse
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.load import SCENARIOS, run
from benchmarks.processes import Measured, running
from benchmarks.requests import QUEUES, TOPIC

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path(__file__).with_name("bare_loop.pyx")
BUILD = ROOT / "var" / "bench" / "bare"
NAMES = ("send-64x1", "send-1x64", "send-16x16", "batch-32")
LOG_BYTES = 256 << 20
ZEROS = bytes(1 << 20)
READ_BUFFER_BYTES = 256 * 1024
HOST = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"
BORN_MS = 1_700_000_000_000


class Queue:
    """Units go to memory, and are forgotten when there are many."""

    def __init__(self) -> None:
        self.next_offset = 0
        self._units = bytearray()

    def take(self, units: bytes) -> None:
        """Add units."""
        self._units += units
        self.next_offset += len(units) // 20
        if len(self._units) > len(ZEROS):
            self._units.clear()


class Shell:
    """What the kernel asks of a broker: here there is always room."""

    def __init__(self, topic: Callable[[bytes, int], Any]) -> None:
        self.position = 0
        self._topic = topic

    def begin(self) -> tuple[int, int, int, float, int]:
        """Where sends of this turn go."""
        return self.position, LOG_BYTES, BORN_MS, 1e9, 1 << 30

    def topic(self, name: bytes) -> Any:
        """The one topic."""
        return self._topic(name, QUEUES) if name == TOPIC.encode() else None

    def queue(self, name: bytes, queue_id: int) -> Queue:
        """A queue of it."""
        return Queue()


class Endpoint:
    """What the kernel needs of a server."""

    def __init__(self) -> None:
        self.read_buffer = memoryview(bytearray(READ_BUFFER_BYTES))
        self.dirty: list[Any] = []


def compile_loop() -> Any:
    """Compile the loop unless it is newer than its source, and import it."""
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
    """Run the bare loop until the process is ended; prints its port first."""
    from core_broker.config import BrokerConfig
    from core_broker.kernel.hot_path import HotPath
    from core_broker.kernel.queues import HotTopic
    from core_broker.kernel.sends import SendKernel
    from core_broker.processors.put_answers import answer_parts

    log_fd = os.open(folder / "log", os.O_RDWR | os.O_CREAT)
    for offset in range(0, LOG_BYTES + len(ZEROS), len(ZEROS)):
        os.pwrite(log_fd, ZEROS, offset)
    shell = Shell(HotTopic)
    kernel = SendKernel(shell)
    kernel.configure(
        host=HOST,
        id_prefix=HOST.hex().upper().encode(),
        cluster=b"DefaultCluster",
        answer_parts=answer_parts(BrokerConfig()),
        is_indexing=True,
        is_sync=False,
        body_max=4 << 20,
    )
    path = HotPath(Endpoint(), {310: kernel, 320: kernel})
    loop = compile_loop()
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        loop.serve(listener, path, kernel, shell, log_fd, LOG_BYTES, HOST)


class Figures(NamedTuple):
    """Messages a second, and what each cost the server."""

    rate: float
    cpu_us: float


def measure(server: Measured, name: str, addr: str, seconds: float) -> Figures:
    """Load a server once."""
    before = server.cpu_seconds()
    figures = run(SCENARIOS[name], addr, seconds=seconds)
    cpu_us = (server.cpu_seconds() - before) * 1e6 / max(1, figures["messages"])
    return Figures(figures["rate"], cpu_us)


def measure_bare(folder: Path, name: str, seconds: float) -> Figures:
    """Load the bare loop."""
    command = [sys.executable, "-m", "benchmarks.bare", "--serve", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as server:
        assert server.stdout is not None
        try:
            addr = f"127.0.0.1:{int(server.stdout.readline())}"
            return measure(Measured(server, 0.0), name, addr, seconds)
        finally:
            server.kill()


def measure_broker(folder: Path, name: str, seconds: float) -> Figures:
    """Load the broker."""
    with running(folder) as cluster:
        return measure(cluster.broker, name, cluster.broker_addr, seconds)


def main() -> None:
    """Measure both in turns and print the ratios."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bare", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5, help="per run (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--only", choices=NAMES, nargs="+", default=NAMES)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve)
        return
    compile_loop()
    figures = {}
    for name in options.only:
        runs: dict[str, list[Figures]] = {"bare": [], "broker": []}
        for _ in range(options.rounds):
            for kind, load in (("bare", measure_bare), ("broker", measure_broker)):
                folder = Path(tempfile.mkdtemp(dir=BUILD))
                try:
                    runs[kind].append(load(folder, name, options.seconds))
                finally:
                    shutil.rmtree(folder, ignore_errors=True)
        bare, broker = (
            Figures(median(each.rate for each in kind), median(each.cpu_us for each in kind))
            for kind in runs.values()
        )
        figures[name] = {
            "bare": bare._asdict(),
            "broker": broker._asdict(),
            "ratio": round(broker.rate / bare.rate, 2),
        }
        sys.stdout.write(
            f"{name:<12}bare {bare.rate:>10,.0f}/s {bare.cpu_us:>6.2f} us"
            f"   broker {broker.rate:>10,.0f}/s {broker.cpu_us:>6.2f} us"
            f"   {broker.rate / bare.rate:.2f}\n"
        )
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()

"""The broker's kernel under a bare C loop (`bare_loop.pyx`), as a server of its own.

The server stores sends and answers pulls as the broker's compiled fast path does, without the
broker's Python code. benchmarks/bounds.py compares both.
"""

import importlib.util
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.processes import Measured
from benchmarks.requests import QUEUES, TOPIC
from core_broker.limits import MESSAGE_BYTES_MAX

if TYPE_CHECKING:
    from core_broker.store.queue_tail import QueueTail
else:
    from core_broker.store.consume_queue import QueueTail

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCE: Final = Path(__file__).with_name("bare_loop.pyx")
BUILD: Final = ROOT / "var" / "bench" / "bare"
#: Size of the log; sends beyond overwrite its beginning.
LOG_BYTES: Final = 256 << 20
ZEROS: Final = bytes(1 << 20)
READ_BUFFER_BYTES: Final = 256 * 1024
UNIT_BYTES: Final = 20
#: Maximum bytes of a queue's units in memory.
UNITS_BYTES_MAX: Final = 8 << 20
HOST: Final = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"
BORN_MS: Final = 1_700_000_000_000
#: Limits of one pull, the broker's defaults: messages, bytes, scanned units.
PULL_LIMITS: Final = (32, 256 * 1024, 16_000)


class Queue(QueueTail):
    """Keeps consume-queue units in memory; at the maximum, drops the units."""

    def __init__(self, topic: str, queue_id: int) -> None:
        super().__init__(topic)
        self.queue_id = queue_id

    def show(self) -> None:
        """Show the appended units to pulls."""
        if self.publish() > UNITS_BYTES_MAX:
            self._tail.clear()
            self.min_offset = self.next_offset

    def read(self, offset: int, count: int) -> bytes:
        """Return bytes of up to `count` units."""
        at = (offset - self.min_offset) * UNIT_BYTES
        return bytes(self._tail[at : at + count * UNIT_BYTES])


class Shell:
    """The interface of a broker for the kernel's sends, with unlimited capacity."""

    def __init__(self, topic: Any) -> None:
        self.position = 0
        self.queues = {number: Queue(TOPIC, number) for number in range(QUEUES)}
        self._topic = topic

    def begin(self) -> tuple[int, int, int, float, int]:
        """Write position and limits for the sends of one event-loop iteration."""
        return self.position, LOG_BYTES, BORN_MS, 1e9, 1 << 30

    def topic(self, name: bytes) -> Any:
        """The topic of the benchmark; None for other names."""
        return self._topic(name, QUEUES) if name == TOPIC.encode() else None

    def queue(self, name: bytes, queue_id: int) -> Queue:
        """A queue of the topic."""
        return self.queues[queue_id]


class PullShell:
    """The interface of a broker for the kernel's pulls of a log that has not wrapped."""

    def __init__(self, shell: Shell, source: Any, mapping: Any) -> None:
        self._shell = shell
        self._source = source
        self._mapping = mapping

    def begin(self) -> tuple[int, int, float, int]:
        """Readable range and limits for the pulls of one event-loop iteration."""
        return 0, min(self._shell.position, LOG_BYTES), 1e9, -1

    def mapping(self, offset: int) -> Any:
        """The mapped log."""
        return self._mapping

    def source(self, group: str, topic: str, queue_id: int, *_: object) -> Any:
        """A queue of the topic; every message passes."""
        queue = self._shell.queues[queue_id]
        target = (group, topic, queue_id)
        return self._source(queue, lambda kept, *range_: kept.read(*range_), target, None, 0)


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
    from core_broker.fastpath.templates import pull_templates, send_template
    from core_broker.kernel.fast_path import FastPath
    from core_broker.kernel.mapping import Mapping
    from core_broker.kernel.pulls import CompiledPulls
    from core_broker.kernel.queues import SendTopic
    from core_broker.kernel.sends import CompiledSends
    from core_broker.kernel.sources import PullSource
    from core_broker.message.properties import encode_properties
    from core_broker.processors.added_properties import added_properties

    log_fd = os.open(folder / "log", os.O_RDWR | os.O_CREAT)
    write_zeros(log_fd, LOG_BYTES + len(ZEROS))
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
    pulls = CompiledPulls(PullShell(shell, PullSource, Mapping(log_fd, 0, LOG_BYTES, 0)))
    pulls.configure(pull_templates(), *PULL_LIMITS)
    handlers = {310: kernel, 320: kernel, 11: pulls}
    path = FastPath(memoryview(bytearray(READ_BUFFER_BYTES)), handlers)
    loop = compile_loop()
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        loop.serve(listener, path, kernel, shell, log_fd, LOG_BYTES, HOST)


def write_zeros(descriptor: int, size: int) -> None:
    """Fill a file, so that its pages are allocated."""
    for offset in range(0, size, len(ZEROS)):
        os.pwrite(descriptor, ZEROS, offset)


@contextmanager
def running_bare(folder: Path) -> Iterator[tuple[Measured, str]]:
    """Start the bare loop; yields the process and its address, and kills the process at the end."""
    command = [sys.executable, "-m", "benchmarks.bare", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as server:
        assert server.stdout is not None
        try:
            yield Measured(server, 0.0), f"127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.kill()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))

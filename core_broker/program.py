"""What broker and name server have in common as programs: options, signals, lines, exit codes.

Exit codes: 0 stopped in order, 1 a port or the store cannot be used, 2 wrong settings or options.
"""

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from core_broker.config import Settings
from core_broker.config.loading import Loaded
from core_broker.errors import GantryError, SettingsError
from core_broker.monitoring.side_port import SidePort
from core_broker.remoting.descriptors import raise_descriptor_limit

log = logging.getLogger(__name__)

EXIT_CANNOT_START = 1
EXIT_SETTINGS = 2
#: Objects made between two looks of the garbage collector at the young ones. Requests make no
#: cycles, so looking rarely saves time and keeps no memory.
GC_THRESHOLD = 50_000


class Server(Protocol):
    """A program's one object. `stop` is also called after a `start` that failed."""

    side_port: SidePort | None

    async def start(self) -> None: ...
    async def stop(self) -> None: ...


C = TypeVar("C", bound=Settings)
S = TypeVar("S", bound=Server)


def run(
    arguments: Sequence[str] | None,
    load: Callable[[Sequence[str]], Loaded[C]],
    build: Callable[[Loaded[C]], S],
    ready_lines: Callable[[S], Iterable[str]],
) -> int:
    """Run a server until SIGTERM or Ctrl-C and return the exit code.

    `ready_lines` are printed when it serves: one for each listener, then RocketMQ's own. The second
    signal ends the process without waiting for anything.
    """
    try:
        loaded = load(sys.argv[1:] if arguments is None else arguments)
        if loaded.listing is not None:
            sys.stdout.write(loaded.listing)
            return 0
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
        for warning in loaded.warnings:
            log.warning(warning)
        raise_descriptor_limit()
        server = build(loaded)
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_SETTINGS
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(server, ready_lines))
    except GantryError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_CANNOT_START
    return 0


def side_port_line(server: Server, address: str) -> list[str]:
    """The line of the HTTP side port, where there is one."""
    if server.side_port is None:
        return []
    return [f"listens on {address}:{server.side_port.port} (http: /readyz /metrics /varz)"]


async def _serve(server: S, ready_lines: Callable[[S], Iterable[str]]) -> None:
    stopping = asyncio.Event()

    def stop() -> None:
        stopping.set()
        _on_signals(None)
        log.info("stopping; a second signal stops at once")

    _on_signals(stop)
    try:
        await server.start()
        for line in ready_lines(server):
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
        gc.freeze()
        gc.set_threshold(GC_THRESHOLD)
        await stopping.wait()
    finally:
        await server.stop()


def _on_signals(handler: Callable[[], object] | None) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        if handler is not None:
            loop.add_signal_handler(number, handler)
        else:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """A faster loop where it is installed (the extra `speed`)."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory

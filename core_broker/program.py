"""The common frame of mqbroker and mqnamesrv: settings, signals, ready lines, exit codes.

Exit codes: 0 orderly stop, 1 a port or the store cannot be used, 2 wrong settings or options.
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
from core_broker.monitoring import service_manager
from core_broker.monitoring.side_port import SidePort
from core_broker.remoting.descriptors import raise_descriptor_limit

log = logging.getLogger(__name__)

EXIT_CANNOT_START = 1
EXIT_SETTINGS = 2
#: Allocations between two collections of the garbage collector's youngest generation. Requests
#: create no reference cycles, so rare collections save time and retain no memory.
GC_THRESHOLD = 50_000


class Server(Protocol):
    """The server of a program. `stop` is also called after a failed `start`."""

    @property
    def side_port(self) -> SidePort | None: ...

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

    `ready_lines` are printed when the server is ready: one line per listener, then the line of
    RocketMQ. The second signal ends the process at once.
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
    """Return the ready line of the HTTP side port; empty when the port is switched off."""
    if server.side_port is None:
        return []
    return [f"listens on {address}:{server.side_port.port} (http: /readyz /metrics /varz)"]


async def _serve(server: S, ready_lines: Callable[[S], Iterable[str]]) -> None:
    stopping = asyncio.Event()

    def stop() -> None:
        stopping.set()
        service_manager.report(service_manager.STOPPING)
        _on_signals(None)
        log.info("stopping; a second signal ends the process at once")

    _on_signals(stop)
    try:
        await server.start()
        for line in ready_lines(server):
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
        service_manager.report(service_manager.READY)
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
    """Return the factory of uvloop where the extra `speed` is installed; None is asyncio's loop."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory

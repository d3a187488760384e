"""`python -m core_broker`, or `mqbroker`: run a broker until SIGTERM or Ctrl-C.

Exit codes: 0 stopped in order, 1 a port or the store cannot be used, 2 wrong settings or options.
"""

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Callable, Sequence

from core_broker.broker import Broker
from core_broker.errors import GantryError, SettingsError
from core_broker.properties import load_broker_config

log = logging.getLogger("core_broker")

EXIT_CANNOT_START = 1
EXIT_SETTINGS = 2
#: Objects made between two looks of the garbage collector at the young ones. Requests make no
#: cycles, so looking rarely saves time and keeps no memory.
GC_THRESHOLD = 50_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    try:
        loaded = load_broker_config(sys.argv[1:] if argv is None else argv)
        if loaded.listing is not None:
            sys.stdout.write(loaded.listing)
            return 0
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
        for warning in loaded.warnings:
            log.warning(warning)
        broker = Broker(loaded.config, loaded.file)
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_SETTINGS
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(broker))
    except GantryError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_CANNOT_START
    return 0


async def _serve(broker: Broker) -> None:
    stopping = asyncio.Event()
    _on_signals(stopping.set)
    try:
        await broker.start()
        _say_where(broker)
        gc.freeze()
        gc.set_threshold(GC_THRESHOLD)
        await stopping.wait()
        # A second signal does not wait for anything.
        _on_signals(None)
        log.info("stopping; a second signal stops at once")
    finally:
        await broker.stop()


def _say_where(broker: Broker) -> None:
    config = broker.config
    host = config.bind_address
    _say(f"listens on {host}:{broker.port} (remoting)")
    _say(f"listens on {host}:{broker.vip_port} (remoting for producers, VIP)")
    if broker.side_port is not None:
        _say(f"listens on {host}:{broker.side_port.port} (http: /readyz /metrics /varz)")
    line = f"The broker[{config.broker_name}, {broker.addr}] boot success. serializeType=JSON"
    if config.namesrv_addr:
        line += f" and name server is {config.namesrv_addr}"
    _say(line)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


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


if __name__ == "__main__":
    sys.exit(main())

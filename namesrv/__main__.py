"""`python -m namesrv`, or `mqnamesrv`: run a name server until SIGTERM or Ctrl-C.

Exit codes: 0 stopped in order, 1 a port is taken, 2 wrong settings or options.
"""

import asyncio
import errno
import logging
import signal
import sys
from collections.abc import Sequence

from core_broker.errors import SettingsError
from core_broker.properties import load_namesrv_config
from namesrv.server import NameServer

log = logging.getLogger("namesrv")

EXIT_CANNOT_LISTEN = 1
EXIT_SETTINGS = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    try:
        loaded = load_namesrv_config(sys.argv[1:] if argv is None else argv)
        if loaded.listing is not None:
            sys.stdout.write(loaded.listing)
            return 0
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
        for warning in loaded.warnings:
            log.warning(warning)
        server = NameServer(loaded.config)
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_SETTINGS
    try:
        asyncio.run(_serve(server))
    except OSError as error:
        sys.stderr.write(_cannot_listen(server, error))
        return EXIT_CANNOT_LISTEN
    return 0


async def _serve(server: NameServer) -> None:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    try:
        await server.start()
        host = server.config.bind_address
        _say(f"listens on {host}:{server.port} (remoting)")
        if server.side_port is not None:
            _say(f"listens on {host}:{server.side_port.port} (http: /readyz /metrics /varz)")
        _say("The Name Server boot success. serializeType=JSON")
        await stopping.wait()
        # The second signal does not wait for anything.
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
    finally:
        await server.stop()


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _cannot_listen(server: NameServer, error: OSError) -> str:
    config = server.config
    if error.errno != errno.EADDRINUSE:
        return f"Cannot listen on {config.bind_address}: {error.strerror}; see bindAddress.\n"
    if server.port == 0:
        return f"Port {config.listen_port} is in use; stop who holds it or set listenPort.\n"
    return f"Port {config.http_port} is in use; stop who holds it or set httpPort (-1: none).\n"


if __name__ == "__main__":
    sys.exit(main())

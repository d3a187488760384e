"""`python -m namesrv`, or `mqnamesrv`: run a name server until SIGTERM or Ctrl-C.

Exit codes are those of `core_broker.program`.
"""

import sys
from collections.abc import Iterable, Sequence

from core_broker import program
from core_broker.config.loading import load_namesrv_config
from namesrv.server import NameServer


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    return program.run(
        argv, load_namesrv_config, lambda loaded: NameServer(loaded.config), _ready_lines
    )


def _ready_lines(server: NameServer) -> Iterable[str]:
    host = server.config.bind_address
    yield f"listens on {host}:{server.port} (remoting)"
    controller = server.controller
    if controller is not None:
        yield f"listens on {controller.bind_address}:{controller.port} (controller)"
        yield f"listens on {controller.bind_address}:{controller.raft_port} (Raft)"
    yield from program.side_port_line(server, host)
    yield "The Name Server boot success. serializeType=JSON"


if __name__ == "__main__":
    sys.exit(main())

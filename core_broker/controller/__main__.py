"""`python -m core_broker.controller`, or `mqcontroller`: run a controller until SIGTERM or Ctrl-C.

Exit codes are those of `core_broker.program`.
"""

import sys
from collections.abc import Iterable, Sequence

from core_broker import program
from core_broker.config.loading import load_controller_config
from core_broker.controller.server import Controller


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    return program.run(
        argv, load_controller_config, lambda loaded: Controller(loaded.config), _ready_lines
    )


def _ready_lines(controller: Controller) -> Iterable[str]:
    host = controller.bind_address
    yield f"listens on {host}:{controller.port} (remoting)"
    yield f"listens on {host}:{controller.raft_port} (Raft)"
    yield from program.side_port_line(controller, host)
    yield "The Controller Server boot success. serializeType=JSON"


if __name__ == "__main__":
    sys.exit(main())

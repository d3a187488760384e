"""`python -m core_broker`, or `mqbroker`: run a broker until SIGTERM or Ctrl-C.

Exit codes are those of `core_broker.program`.
"""

import sys
from collections.abc import Iterable, Sequence

from core_broker import program
from core_broker.broker import Broker
from core_broker.config.loading import load_broker_config


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    return program.run(
        argv, load_broker_config, lambda loaded: Broker(loaded.config, loaded.file), _ready_lines
    )


def _ready_lines(broker: Broker) -> Iterable[str]:
    config = broker.config
    host = config.bind_address
    yield f"listens on {host}:{broker.port} (remoting)"
    yield f"listens on {host}:{broker.vip_port} (remoting for producers, VIP)"
    if broker.ha_port:
        ha_host = broker.config.ha_bind_address or host
        yield f"listens on {ha_host}:{broker.ha_port} (replication)"
    yield from program.side_port_line(broker, host)
    line = f"The broker[{config.broker_name}, {broker.addr}] boot success. serializeType=JSON"
    if config.namesrv_addr:
        line += f" and name server is {config.namesrv_addr}"
    yield line


if __name__ == "__main__":
    sys.exit(main())

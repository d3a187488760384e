"""The options of `manage.py up` and `manage.py demo`."""

import argparse
import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from core_broker.limits import PORT_MAX

NAMESRV_PORT = 9876
BROKER_PORT = 10911
CONSOLE_PORT = 8082

EPILOG = """\
environment:
  GANTRY_HOME             folder for data, settings and logs (default ./var)
  GANTRY_ADMIN_PASSWORD   password of the first admin; generated and printed once when absent
  PORT, CONSOLE_PORT      port of the console
  REDIS_URL               a Redis or Valkey to use instead of the embedded one
  DATABASE_URL            a PostgreSQL to use instead of SQLite in the home folder
  ROCKETMQ_<KEY>          any setting of the broker and the name server

exit codes: 0 stopped on request, 1 a program could not be started, 2 wrong options or settings
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What one `up` was asked to run. Port 0 means any free one."""

    home: Path
    host: str = "127.0.0.1"
    namesrv_port: int = NAMESRV_PORT
    broker_port: int = BROKER_PORT
    console_port: int = CONSOLE_PORT
    with_worker: bool = True
    with_demo: bool = False


def parse_options(
    arguments: Sequence[str], environ: Mapping[str, str] = os.environ, *, demo: bool = False
) -> Options:
    """Turn command line and environment into `Options`; exits with 2 and a usage on a mistake."""
    parser = argparse.ArgumentParser(
        prog=f"manage.py {'demo' if demo else 'up'}",
        description="Start name server, broker, console and background jobs; Ctrl-C stops all."
        + (" Sample producers and consumers run beside them." if demo else ""),
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    console_port = environ.get("CONSOLE_PORT") or environ.get("PORT") or str(CONSOLE_PORT)
    home = environ.get("GANTRY_HOME") or "var"
    add = parser.add_argument
    add("--home", type=Path, default=Path(home), metavar="DIR", help=f"data folder ({home})")
    add(
        "--host",
        type=address,
        default="127.0.0.1",
        help="address to listen on (%(default)s: this machine only)",
    )
    port = partial(add, type=port_number, metavar="N")
    port("--namesrv-port", default=NAMESRV_PORT, help="name server (%(default)s; 0: any)")
    port("--broker-port", default=BROKER_PORT, help="broker (%(default)s; 0: any)")
    port("--console-port", default=console_port, help="console (%(default)s; 0: any)")
    add("--no-worker", action="store_true", help="no background jobs: no Celery, no Spark")
    given = parser.parse_args(arguments)
    return Options(
        home=given.home.expanduser().resolve(),
        host=given.host,
        namesrv_port=given.namesrv_port,
        broker_port=given.broker_port,
        console_port=given.console_port,
        with_worker=not given.no_worker,
        with_demo=demo,
    )


def port_number(text: str) -> int:
    """Parse a port; `argparse` shows the complaint beside the option's name."""
    if not re.fullmatch("[0-9]{1,5}", text) or int(text) > PORT_MAX:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to {PORT_MAX}, got {text!r}")
    return int(text)


def address(host: str) -> str:
    """Look a host name up once, here: every program is told the same address."""
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except (OSError, UnicodeError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise argparse.ArgumentTypeError(f"no address for {host!r}: {reason}") from None

"""The options of `manage.py up` and `manage.py demo`."""

import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from console.project_files import COMMAND, HOME_DEFAULT, IS_INSTALLED
from core_broker.limits import PORT_MAX

NAMESRV_PORT = 9876
BROKER_PORT = 10911
CONSOLE_PORT = 8082
REPLICAS_MAX = 5
#: Maximum number of brokers: names end in a letter, broker-a to broker-z.
BROKERS_MAX = 26
CONTROLLERS = 3

EPILOG = """\b
environment:
  GANTRY_HOME             folder for data, settings and logs (default {default})
  GANTRY_ADMIN_PASSWORD   password of the first admin; generated and printed once when absent
  PORT, CONSOLE_PORT      port of the console
  REDIS_URL               a Redis or Valkey to use instead of the embedded one
  DATABASE_URL            a PostgreSQL to use instead of SQLite in the home folder
  ROCKETMQ_<KEY>          any setting of the broker and the name server

exit codes: 0 stopped on request, 1 a program could not be started, 2 wrong options or settings
"""
HELP_COLUMNS_MAX = 100
_HOME_WORDS = "./var" if IS_INSTALLED else "var/ beside manage.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of one start. Port 0 means any free port."""

    home: Path
    host: str = "127.0.0.1"
    namesrv_port: int = NAMESRV_PORT
    broker_port: int = BROKER_PORT
    console_port: int = CONSOLE_PORT
    with_worker: bool = True
    with_demo: bool = False
    replicas: int = 1
    #: Number of brokers with messages of their own; None: as the home folder was started before.
    brokers: int | None = None
    #: None: as the home folder was started before.
    secure: bool | None = None

    @property
    def controllers(self) -> int:
        """Number of controllers: 0 for one broker, 1 for two replicas, else 3."""
        if self.replicas == 1:
            return 0
        return 1 if self.replicas == 2 else CONTROLLERS


def parse_options(
    arguments: Sequence[str], environ: Mapping[str, str] = os.environ, *, demo: bool = False
) -> Options:
    """Return the options of a command line, with defaults from the environment.

    `-h` prints the help and raises SystemExit(0). A wrong option prints the usage on stderr and
    raises SystemExit(2).
    """
    program = f"{COMMAND} {'demo' if demo else 'up'}"
    try:
        params = _command(program, environ, demo).make_context(program, list(arguments)).params
    except click.exceptions.Exit as end:
        raise SystemExit(end.exit_code) from None
    except click.ClickException as error:
        error.show()
        raise SystemExit(error.exit_code) from None
    home, no_worker = params.pop("home"), params.pop("no_worker")
    return Options(
        home=home.expanduser().resolve(), with_worker=not no_worker, with_demo=demo, **params
    )


def _command(program: str, environ: Mapping[str, str], demo: bool) -> click.Command:
    console_port = environ.get("CONSOLE_PORT") or environ.get("PORT") or str(CONSOLE_PORT)
    home = environ.get("GANTRY_HOME") or str(HOME_DEFAULT)
    return click.Command(
        program,
        help="Start name server, broker, console and background jobs; Ctrl-C stops all."
        + (" Sample producers and consumers run beside them." if demo else ""),
        epilog=EPILOG.format(default=_HOME_WORDS),
        context_settings={
            "help_option_names": ["-h", "--help"],
            "max_content_width": HELP_COLUMNS_MAX,
        },
        params=[
            click.Option(
                ["--home"],
                type=click.Path(path_type=Path),
                default=home,
                metavar="DIR",
                help=f"data folder ({home})",
            ),
            click.Option(
                ["--host"],
                callback=_address,
                default="127.0.0.1",
                metavar="HOST",
                help="address to listen on (127.0.0.1: this machine only)",
            ),
            _port("--namesrv-port", "name server", str(NAMESRV_PORT)),
            _port("--broker-port", "broker", str(BROKER_PORT)),
            _port("--console-port", "console", console_port),
            click.Option(
                ["--no-worker"], is_flag=True, help="no background jobs: no Celery, no Spark"
            ),
            click.Option(
                ["--brokers"],
                type=click.IntRange(1, BROKERS_MAX),
                default=None,
                metavar="N",
                help=f"brokers with messages of their own, 1 to {BROKERS_MAX}: one per core; kept "
                "for later starts",
            ),
            click.Option(
                ["--replicas"],
                type=click.IntRange(1, REPLICAS_MAX),
                default=1,
                metavar="N",
                help=f"brokers with a copy of each message, 1 to {REPLICAS_MAX}; controllers elect "
                "the master (1)",
            ),
            click.Option(
                ["--secure/--no-secure"],
                default=None,
                help="accept signed requests over TLS only; kept for later starts",
            ),
        ],
    )


def _port(option: str, listener: str, default: str) -> click.Option:
    return click.Option(
        [option],
        callback=_port_number,
        default=default,
        metavar="N",
        help=f"{listener} ({default}; 0: any)",
    )


def _port_number(_context: click.Context, parameter: click.Parameter, text: Any) -> int:
    """Parse a port; 0 means any free port."""
    if not re.fullmatch("[0-9]{1,5}", text) or int(text) > PORT_MAX:
        raise _wrong(parameter, f"expected a port from 0 to {PORT_MAX}, got {text!r}")
    return int(text)


def _address(_context: click.Context, parameter: click.Parameter, host: Any) -> str:
    """Resolve the host name once, so that every program listens on the same address."""
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except (OSError, UnicodeError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise _wrong(parameter, f"no address for {host!r}: {reason}") from None


def _wrong(parameter: click.Parameter, reason: str) -> click.UsageError:
    return click.UsageError(f"{parameter.opts[0]}: {reason}")

"""The command line of mqbroker and mqnamesrv, with RocketMQ's option names."""

from collections.abc import Sequence
from dataclasses import dataclass

import click


@dataclass(frozen=True, slots=True)
class Options:
    """Options of one start; at most one of the three print-outs is set."""

    settings_file: str | None
    namesrv_addr: str | None
    prints_all: bool
    prints_important: bool
    checks: bool


def parse_options(program: str, argv: Sequence[str]) -> Options:
    """Return the options.

    `-h` prints the help and raises SystemExit(0); a wrong option prints the usage on stderr and
    raises SystemExit(2).
    """
    command = _command(program)
    try:
        context = command.make_context(program, list(argv))
        options = Options(**context.params)
        if options.prints_all + options.prints_important + options.checks > 1:
            raise click.UsageError("-p, -m and --check exclude each other.", context)
    except click.exceptions.Exit as end:
        raise SystemExit(end.exit_code) from None
    except click.ClickException as error:
        error.show()
        raise SystemExit(error.exit_code) from None
    return options


def _command(program: str) -> click.Command:
    return click.Command(
        program,
        help="Settings: defaults < file < environment ROCKETMQ_<KEY> < options.",
        epilog="Environment: NAMESRV_ADDR is used where neither file nor options name one.",
        context_settings={"help_option_names": ["-h", "--help"]},
        params=[
            click.Option(
                ["settings_file", "-c", "--configFile"],
                metavar="FILE",
                help="settings file (.properties)",
            ),
            click.Option(
                ["namesrv_addr", "-n", "--namesrvAddr"],
                metavar="HOST:PORT[;HOST:PORT]",
                help="name servers to register with",
            ),
            click.Option(
                ["prints_all", "-p", "--printConfigItem"], is_flag=True, help="print every setting"
            ),
            click.Option(
                ["prints_important", "-m", "--printImportantConfig"],
                is_flag=True,
                help="print the important settings",
            ),
            click.Option(
                ["checks", "--check"],
                is_flag=True,
                help="check the settings, print the source of each, exit",
            ),
        ],
    )

"""The options of a start by click: print-outs, help, long names, and errors."""

from collections.abc import Mapping, Sequence
from typing import Any

import click


def parsed(program: str, argv: Sequence[str]) -> Mapping[str, Any]:
    """Return the values of `Options`, under the contract of `parse_options`."""
    command = _command(program)
    try:
        context = command.make_context(program, list(argv))
        values: Mapping[str, Any] = context.params
        if values["prints_all"] + values["prints_important"] + values["checks"] > 1:
            raise click.UsageError("-p, -m and --check exclude each other.", context)
    except click.exceptions.Exit as end:
        raise SystemExit(end.exit_code) from None
    except click.ClickException as error:
        error.show()
        raise SystemExit(error.exit_code) from None
    return values


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

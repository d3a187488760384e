"""`mqadmin <command> [options]`: finds the command, or prints what there is.

Exit codes are those of `session.ExitCode`. What goes wrong is one sentence on the error stream.
"""

import io
import re
import sys
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from core_broker.mqadmin.catalog import CATALOG, find_name

EPILOG = "See 'mqadmin help <command>' for more information on a specific command."


class Cli(click.Group):
    """Commands are read from their files when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(CATALOG)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "help":
            return help_command
        name = find_name(cmd_name)
        return None if name is None else load(name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            ctx.fail(_unknown(args[0]))
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names come from the catalogue: loading every command would be too slow for a key."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        start = incomplete.lower()
        return [
            CompletionItem(name, help=entry.help)
            for name, entry in CATALOG.items()
            if name.lower().startswith(start)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in CATALOG.items()])


def load(name: str) -> click.Command:
    """The command of a name in the catalogue."""
    module = import_module(f"core_broker.mqadmin.{CATALOG[name].module}")
    found: Any = getattr(module, attribute(name))
    assert isinstance(found, click.Command)
    return found


def attribute(name: str) -> str:
    """What a command's object is called in its file: `topic_status` for topicStatus."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name.lower(), [each.lower() for each in CATALOG], n=1)
    hint = f" Did you mean {find_name(close[0])}?" if close else ""
    return f"The sub command {name} not exist.{hint}"


@click.group(
    cls=Cli,
    epilog=EPILOG,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.pass_context
def cli(context: click.Context) -> None:
    """Look at a RocketMQ cluster and change it: Gantry's or Apache's."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@click.command("help", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("name", required=False, metavar="[command]")
@click.pass_context
def help_command(context: click.Context, name: str | None) -> None:
    """Print what a command does and its options."""
    group = context.parent
    assert group is not None
    if name is None:
        click.echo(group.get_help())
        return
    found = find_name(name)
    if found is None:
        context.fail(_unknown(name))
    with click.Context(load(found), info_name=found, parent=group) as inner:
        click.echo(inner.get_help())


def main() -> None:
    """Run the program; it ends with one of the documented exit codes."""
    # A terminal that does not know a letter must not end the command.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    cli(prog_name="mqadmin")

"""`mqadmin <command> [options]`: command lookup and help.

Exit codes are those of `session.ExitCode`. A failure is one sentence on the error stream.
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
    """The group of all commands. A command's module is imported when the command is run."""

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
        """Complete names from the catalogue: importing all commands is too slow for a key press."""
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
    """Import and return the command of a name in the catalogue."""
    module = import_module(f"core_broker.mqadmin.{CATALOG[name].module}")
    loaded: Any = getattr(module, attribute(name))
    assert isinstance(loaded, click.Command)
    return loaded


def attribute(name: str) -> str:
    """Return the name of a command's object in its module: `topic_status` for topicStatus."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name.lower(), [command.lower() for command in CATALOG], n=1)
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
    """Inspect and administer a RocketMQ cluster: Gantry's or Apache's."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@click.command("help", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("name", required=False, metavar="[command]")
@click.pass_context
def help_command(context: click.Context, name: str | None) -> None:
    """Print the description and the options of a command."""
    group = context.parent
    assert group is not None
    if name is None:
        click.echo(group.get_help())
        return
    spelled = find_name(name)
    if spelled is None:
        context.fail(_unknown(name))
    with click.Context(load(spelled), info_name=spelled, parent=group) as inner:
        click.echo(inner.get_help())


def main() -> None:
    """Run the program and exit with one of the documented exit codes."""
    # A character missing from the terminal's encoding must not abort the command.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    cli(prog_name="mqadmin")

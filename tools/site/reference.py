"""Pages of the reference that are generated from code: settings, commands, the Python API."""

from collections.abc import Iterable
from dataclasses import MISSING
from importlib import import_module
from typing import get_args

import click

import gantry.errors
import gantry.sync
from core_broker.config import BrokerConfig, ControllerConfig, NamesrvConfig, Settings
from core_broker.config.settings import ENVIRONMENT_PREFIX, INT_MAX, LONG_MAX, rules_of
from core_broker.mqadmin.catalog import CATALOG
from core_broker.mqadmin.cli import cli as mqadmin
from core_broker.mqadmin.cli import load
from core_broker.mqstore.cli import cli as mqstore

PROGRAMS: dict[str, type[Settings]] = {
    "broker": BrokerConfig,
    "name server": NamesrvConfig,
    "controller": ControllerConfig,
}
#: Options of every mqadmin command; the page describes them once.
COMMON_OPTIONS = frozenset(
    {"namesrv_addr", "output", "request_timeout_ms", "sign_access_key", "sign_secret_key"}
)


def pages() -> dict[str, str]:
    """Return the Markdown of each page by its path in the site."""
    return {
        "reference/keys.md": keys_page(),
        "reference/mqadmin.md": commands_page(),
        "reference/python.md": python_page("gantry", gantry.__all__, "Python API"),
        "reference/python-sync.md": python_page(
            "gantry.sync", gantry.sync.__all__, "Python API without await"
        ),
        "reference/python-errors.md": python_page(
            "gantry.errors", gantry.errors.__all__, "Python exceptions"
        ),
    }


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table; the cells are Markdown without line ends."""
    columns = list(head)
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def cell(text: str) -> str:
    """Return a text for a table cell: one line, without a column's end and without HTML."""
    return without_html(" ".join(text.split())).replace("|", "\\|")


def without_html(text: str) -> str:
    """Return a text in which `<` outside of code begins no HTML."""
    parts = text.split("`")
    return "`".join(
        part if number % 2 else part.replace("<", "&lt;") for number, part in enumerate(parts)
    )


def code(text: str) -> str:
    """Return a text as code in a table cell, "" for an empty text."""
    return f"`{' '.join(text.split())}`" if text else ""


# ---- settings ------------------------------------------------------------------------------------


def keys_page() -> str:
    """Every key of every program, with its values, default and variable."""
    rows = [
        (key.lower(), key_row(program, kind, key))
        for program, kind in PROGRAMS.items()
        for key in kind.keys()  # noqa: SIM118
    ]
    return (
        "# Settings by key\n\nGenerated from the code: every key of broker, name server and "
        "controller in alphabetical order, with the accepted values. [Settings](../settings.md) "
        "has the meaning of each key, and the variables of the console.\n\n"
        + table(
            ("key", "program", "values", "default", "live", "environment"),
            (row for _, row in sorted(rows)),
        )
    )


def key_row(program: str, kind: type[Settings], key: str) -> list[str]:
    # A default that depends on the machine of the build says nothing about the reader's machine.
    depends = kind.keys()[key].default_factory is not MISSING
    default = "of the machine" if depends else code(dict(kind().items())[key])
    return [
        code(key),
        program,
        "not used" if key in kind.no_effect_keys() else values(kind, key),
        default,
        "yes" if key in kind.updatable_keys() else "",
        code(ENVIRONMENT_PREFIX + key.replace(".", "_").upper()),
    ]


def values(kind: type[Settings], key: str) -> str:
    """Return the accepted values of a key in words."""
    field, rules = kind.keys()[key], rules_of(kind.keys()[key])
    if field.type is bool:
        return "true, false"
    if field.type is int:
        if rules.high in {INT_MAX, LONG_MAX}:
            return f"from {rules.low}"
        return f"{rules.low} to {rules.high}"
    choices = get_args(field.type)
    return ", ".join(str(choice) for choice in choices) if choices else "text"


# ---- commands ------------------------------------------------------------------------------------


def commands_page() -> str:
    parts = [
        "# mqadmin and mqstore by command\n\nGenerated from the code: the help of each command. "
        "[mqadmin](../mqadmin.md) explains name servers, JSON output and exit codes, "
        "[mqstore](../mqstore.md) the store folder.\n",
        "## Options of every mqadmin command\n",
        options_table(load(next(iter(CATALOG))), is_common=True),
    ]
    for name, entry in sorted(CATALOG.items(), key=lambda each: each[0].lower()):
        parts.append(command(f"mqadmin {name}", load(name), entry.help, mqadmin))
    for name, each in sorted(mqstore.commands.items()):
        parts.append(command(f"mqstore {name}", each, "", mqstore))
    return "\n".join(parts)


def command(title: str, found: click.Command, summary: str, group: click.Command) -> str:
    """Return the section of one command: summary, usage, options."""
    parent = click.Context(group, **group.context_settings)
    with parent, click.Context(found, parent, title) as context:
        usage = " ".join(found.collect_usage_pieces(context))
        text = summary or (found.help or "").strip().partition("\n\n")[0]
    options = options_table(found, is_common=False)
    return f"## {title}\n\n{cell(text)}\n\n```text\n{title} {usage}\n```\n\n{options}"


def options_table(found: click.Command, *, is_common: bool) -> str:
    """Return the options that every command has, or the options of this command alone."""
    rows = []
    for each in found.params:
        if isinstance(each, click.Option) and (each.name in COMMON_OPTIONS) is is_common:
            names = ", ".join(code(name) for name in (*each.opts, *each.secondary_opts))
            rows.append([names, "yes" if each.required else "", cell(each.help or "")])
    return table(("option", "required", "meaning"), rows) if rows else ""


# ---- Python --------------------------------------------------------------------------------------


def python_page(module: str, names: Iterable[str], title: str) -> str:
    """Return directives that mkdocstrings replaces by the documentation of each name."""
    text = (
        f"# {title}\n\nGenerated from the code: the public names of `{module}`. "
        "[The client library](../client.md) has a complete program for each task.\n\n"
    )
    found = import_module(module)
    return text + "\n".join(directive(name, getattr(found, name)) for name in sorted(names))


def directive(name: str, found: type) -> str:
    """Return the directive of a name; mkdocstrings reads the module that defines the object.

    The public modules import their names by `*`, which mkdocstrings does not follow.
    """
    path = f"{found.__module__}.{found.__qualname__}"
    return f"::: {path}\n    options:\n      heading: {name}\n"

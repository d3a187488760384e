"""Decorators that make commands: RocketMQ's options, option types, and the run of a command.

    @command("topicStatus")
    @text("-t", "--topic", required=True, help="topic name")
    async def topic_status(session: Session, topic: str) -> None: ...

The function's docstring is part of the command's help. Every command also has -h, -n, --output,
--requestTimeoutMillis, --accessKey and --secretKey.
"""

import asyncio
import inspect
import re
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeVar

import click

from core_broker.client.admin import AdminClient
from core_broker.errors import ClientError, GantryError
from core_broker.mqadmin.catalog import CATALOG
from core_broker.mqadmin.credentials import signing_hooks
from core_broker.mqadmin.output import Output
from core_broker.mqadmin.session import (
    ExitCode,
    PartialFailure,
    Session,
    exit_code_of,
    sentence,
)
from core_broker.mqadmin.times import TimestampText, timestamp_with_text

F = TypeVar("F", bound=Callable[..., Any])

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
REQUEST_TIMEOUT_MS_DEFAULT: Final = 5000
REQUEST_TIMEOUT_MS_MAX: Final = 600_000
NAMESRV_HELP: Final = "Name server address list, eg: '192.168.0.1:9876;192.168.0.2:9876'"


class Text(click.ParamType[str]):
    """A text without leading and trailing blanks, stripped like in RocketMQ; blank text fails."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value).strip()
        if not text:
            self.fail("expected a text, got only blanks", param, ctx)
        return text


class Flag(click.ParamType[bool]):
    """true or false. Other words fail, while RocketMQ reads other words as false."""

    name = "true|false"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        if isinstance(value, bool):
            return value
        word = str(value).strip().lower()
        if word not in {"true", "false"}:
            self.fail(f"{value!r} is neither true nor false", param, ctx)
        return word == "true"


class Number(click.ParamType[int]):
    """A whole number within bounds."""

    name = "number"

    def __init__(self, low: int, high: int) -> None:
        self._low, self._high = low, high

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).strip()
        # int() alone would also accept underscores and digits of other scripts.
        if not re.fullmatch(r"[+-]?[0-9]{1,19}", text):
            self.fail(f"{value!r} is not a whole number", param, ctx)
        number = int(text)
        if not self._low <= number <= self._high:
            self.fail(f"{number} is not between {self._low} and {self._high}", param, ctx)
        return number


class Moment(click.ParamType[TimestampText]):
    """Milliseconds since 1970, or yyyy-MM-dd#HH:mm:ss:SSS in local time.

    Options made with now=True also accept `now` and -1 for the end of the queue.
    """

    name = "time"

    def __init__(self, *, now: bool = False) -> None:
        self._now = now

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> TimestampText:
        if isinstance(value, TimestampText):
            return value
        moment = timestamp_with_text(str(value).strip(), now=self._now)
        if moment is None:
            words = "now, " if self._now else ""
            expected = f"expected {words}milliseconds or yyyy-MM-dd#HH:mm:ss:SSS"
            self.fail(f"{value!r} is not a time; {expected}", param, ctx)
        return moment


def text(*names: str, **settings: Any) -> Callable[[F], F]:
    return _option(names, Text(), settings)


def flag(*names: str, **settings: Any) -> Callable[[F], F]:
    """An option with the value true or false."""
    return _option(names, Flag(), settings)


def switch(*names: str, help: str) -> Callable[[F], F]:  # noqa: A002 - click's word
    """An option without a value."""
    return click.option(*_parameter(names), is_flag=True, help=help)


def number(*names: str, low: int = 0, high: int = INT_MAX, **settings: Any) -> Callable[[F], F]:
    return _option(names, Number(low, high), settings)


def moment(*names: str, now: bool = False, **settings: Any) -> Callable[[F], F]:
    return _option(names, Moment(now=now), settings)


def split_list(value: str | None) -> list[str]:
    """Return the parts of a comma list, without blank parts."""
    return [part.strip() for part in (value or "").split(",") if part.strip()]


def split_addresses(value: str) -> list[str]:
    """Return the parts of a list joined by semicolons; raises ClientError without a part."""
    parts = [part.strip() for part in value.split(";") if part.strip()]
    if not parts:
        raise ClientError(f"{value!r} has no address.")
    return parts


def rounds() -> Callable[[F], F]:
    """The option --rounds of polling commands; RocketMQ's commands poll until Ctrl-C."""
    return number("--rounds", default=0, help="number of rounds | default 0: until Ctrl-C")


def _option(names: tuple[str, ...], kind: click.ParamType[Any], settings: Any) -> Callable[[F], F]:
    settings.setdefault("metavar", f"<{kind.name}>")
    return click.option(*_parameter(names), type=kind, **settings)


def _parameter(names: Iterable[str]) -> list[str]:
    """Return the Python parameter name, from the last option name, followed by all names."""
    names = list(names)
    words = re.sub(r"([a-z])([A-Z])", r"\1_\2", names[-1].lstrip("-").replace(" ", "_"))
    return [words.lower(), *names]


class AdminCommand(click.Command):
    """A command that, like RocketMQ's, also accepts a long option after a single hyphen."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        known = {name for param in self.params for name in param.opts if name.startswith("--")}
        return super().parse_args(ctx, [f"-{arg}" if f"-{arg}" in known else arg for arg in args])


def command(name: str, *, destructive: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Make a command of an async function; its parameters are a Session and the options."""

    def make(function: Callable[..., Awaitable[None]]) -> click.Command:
        def callback(**options: Any) -> None:
            run(function, options)

        options = list(reversed(getattr(function, "__click_params__", [])))
        taken = {opt for option in options for opt in option.opts}
        return AdminCommand(
            name,
            params=[*options, *_common_options(taken, destructive=destructive)],
            callback=callback,
            help="\n\n".join(filter(None, [CATALOG[name].help, inspect.getdoc(function)])),
            short_help=CATALOG[name].help,
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
        )

    return make


def _common_options(taken: set[str], *, destructive: bool) -> list[click.Option]:
    timeout = Number(1, REQUEST_TIMEOUT_MS_MAX)
    options = [
        click.Option(
            ["namesrv_addr", "-n", "--namesrvAddr"],
            envvar="NAMESRV_ADDR",
            metavar="<address>",
            help=NAMESRV_HELP + "  [NAMESRV_ADDR]",
        ),
        click.Option(
            ["output", "--output"],
            type=click.Choice(["table", "json"]),
            default="table",
            help="lines for people, or JSON for programs",
        ),
        click.Option(
            ["request_timeout_ms", "--requestTimeoutMillis"],
            type=timeout,
            default=REQUEST_TIMEOUT_MS_DEFAULT,
            metavar="<number>",
            help=f"timeout of each request | default {REQUEST_TIMEOUT_MS_DEFAULT}",
        ),
        click.Option(
            ["sign_access_key", "--accessKey"],
            envvar="MQADMIN_ACCESS_KEY",
            metavar="<text>",
            help="access key that signs requests | default: conf/tools.yml  [MQADMIN_ACCESS_KEY]",
        ),
        click.Option(
            ["sign_secret_key", "--secretKey"],
            envvar="MQADMIN_SECRET_KEY",
            metavar="<text>",
            help="secret key of the access key  [MQADMIN_SECRET_KEY]",
        ),
    ]
    for option in options:
        # A command's own option of the same name wins; the environment variable still works.
        option.opts = [opt for opt in option.opts if opt not in taken]
        option.hidden = not option.opts
    if destructive:
        options.append(
            click.Option(
                ["dry_run", "--dry-run"], is_flag=True, help="print the changes, change nothing"
            )
        )
    return options


class CommandError(click.ClickException):
    """An error that ends the program with one sentence on the error stream and an exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        # click declares exit_code as a class attribute, but reads the instance's value.
        vars(self)["exit_code"] = exit_code

    def show(self, file: Any = None) -> None:
        click.echo(f"mqadmin: {self.format_message()}", file=file or sys.stderr)


def run(function: Callable[..., Awaitable[None]], options: dict[str, Any]) -> None:
    """Run a command to its end; raise CommandError, or Exit after partial failures."""
    try:
        asyncio.run(_run(function, options))
    except PartialFailure as failed:
        raise click.exceptions.Exit(failed.exit_code) from None
    except GantryError as error:
        raise CommandError(sentence(error), exit_code_of(error)) from None
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise CommandError("interrupted", ExitCode.INTERRUPTED) from None


def _end_on_interrupt() -> None:
    """Let Ctrl-C cancel the command at once.

    The SIGINT handler of asyncio.run does not wake an event loop that is entering its wait: the
    cancellation would be delayed until the wait ends.
    """
    task = asyncio.current_task()
    if task is not None and threading.current_thread() is threading.main_thread():
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)


async def _run(function: Callable[..., Awaitable[None]], options: dict[str, Any]) -> None:
    _end_on_interrupt()
    namesrv_addr = options.pop("namesrv_addr") or ""
    out = Output(sys.stdout, as_json=options.pop("output") == "json")
    hooks = signing_hooks(options.pop("sign_access_key"), options.pop("sign_secret_key"))
    timeout_ms = options.pop("request_timeout_ms")
    dry_run = options.pop("dry_run", False)
    async with AdminClient(namesrv_addr or None, timeout_ms=timeout_ms, rpc_hooks=hooks) as admin:
        session = Session(
            admin,
            out,
            sys.stderr,
            namesrv_addr=namesrv_addr,
            rpc_hooks=hooks,
            dry_run=dry_run,
        )
        await function(session, **options)
        session.finish()

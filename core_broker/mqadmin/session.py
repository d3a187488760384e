"""The state of one run of a command: admin client, output, failures, --dry-run; exit codes."""

from collections.abc import Awaitable, Callable, Sequence
from enum import IntEnum
from typing import Any, TextIO

from core_broker.client.admin import AdminClient
from core_broker.errors import ClientError, GantryError, RequestRefused, TransportError
from core_broker.mqadmin.output import Output
from core_broker.remoting.client import RpcHook
from core_broker.remoting.codes import ResponseCode


class ExitCode(IntEnum):
    """The exit codes of mqadmin; documented in docs/mqadmin.md."""

    DONE = 0
    #: A server refused the request, or the named object does not exist.
    FAILED = 1
    #: The command line or a setting is wrong; no request was sent.
    USAGE = 2
    #: `apply --dry-run`: the cluster differs from the file.
    DRIFT = 2
    #: A server is unreachable or did not answer; the request may have been executed.
    NO_ANSWER = 3
    #: Ctrl-C: the exit code of shells.
    INTERRUPTED = 130


class NotFound(GantryError):
    """An object named on the command line does not exist, or a file cannot be written."""


class PartialFailure(GantryError):
    """Some requests of the command failed; `Session.failed` has reported each failure."""

    def __init__(self, exit_code: ExitCode) -> None:
        self.exit_code = exit_code
        super().__init__("Some requests failed.")


def exit_code_of(error: GantryError) -> ExitCode:
    match error:
        case ClientError():
            return ExitCode.USAGE
        case TransportError():
            return ExitCode.NO_ANSWER
        case _:
            return ExitCode.FAILED


def sentence(error: GantryError) -> str:
    """Return the error text, with a hint about the remedy where there is one."""
    text = str(error)
    hint = ""
    # SYSTEM_ERROR has no general remedy: the reason is in the broker's remark or log.
    if isinstance(error, RequestRefused) and error.code != ResponseCode.SYSTEM_ERROR:
        hint = error.hint
    elif isinstance(error, TransportError):
        hint = "Check the address (-n or NAMESRV_ADDR, -b) and that the server runs."
    if not hint or hint in text:
        return text
    return f"{text.rstrip('. ')}. {hint}"


class Session:
    """One run of a command.

    `namesrv_addr` and `rpc_hooks` configure the producers and consumers that a command starts
    beside the admin client.
    """

    def __init__(
        self,
        admin: AdminClient,
        out: Output,
        errors: TextIO,
        *,
        namesrv_addr: str,
        rpc_hooks: Sequence[RpcHook] = (),
        dry_run: bool = False,
    ) -> None:
        self.admin = admin
        self.out = out
        self.namesrv_addr = namesrv_addr
        self.rpc_hooks = tuple(rpc_hooks)
        self.dry_run = dry_run
        self._errors = errors
        self._exit_code = ExitCode.DONE

    async def change(self, text: str, action: Callable[[], Awaitable[Any]]) -> None:
        """Run the action and print the text; with --dry-run only print the text, marked."""
        if self.dry_run:
            self.out.show_text(f"[dry run] {text}")
            return
        await action()
        self.out.show_text(text)

    def warn(self, text: str) -> None:
        """Print a warning on the error stream; the exit code stays."""
        self._errors.write(f"mqadmin: {text}\n")

    def failed(self, error: GantryError) -> None:
        """Print a failure and return; the program will end with the first failure's exit code."""
        self.warn(sentence(error))
        self._exit_code = self._exit_code or exit_code_of(error)

    def finish(self) -> None:
        """Raise PartialFailure after any reported failure."""
        if self._exit_code is not ExitCode.DONE:
            raise PartialFailure(self._exit_code)

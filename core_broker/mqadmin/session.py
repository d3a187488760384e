"""What a command works with while it runs: the admin client, the output, failures, --dry-run."""

from collections.abc import Awaitable, Callable, Sequence
from enum import IntEnum
from typing import Any, TextIO

from core_broker.client.admin import AdminClient
from core_broker.errors import ClientError, GantryError, RequestRefused, TransportError
from core_broker.mqadmin.output import Output
from core_broker.remoting.client import RpcHook
from core_broker.remoting.codes import ResponseCode


class ExitCode(IntEnum):
    """How the tool ends; documented in docs/mqadmin.md."""

    DONE = 0
    #: A server refused, or what was asked for is not there.
    FAILED = 1
    #: The command line or a setting is wrong; nothing was asked.
    USAGE = 2
    #: A server cannot be reached or is silent; it may have done what was asked.
    NO_ANSWER = 3
    #: Ctrl-C, as shells count it.
    INTERRUPTED = 130


class NotThere(GantryError):
    """What the command line names does not exist."""


class SomeFailed(GantryError):
    """Each failure was told when it happened; the rest was done."""

    def __init__(self, exit_code: ExitCode) -> None:
        self.exit_code = exit_code
        super().__init__("Not all of it was done.")


def exit_code_of(error: GantryError) -> ExitCode:
    match error:
        case ClientError():
            return ExitCode.USAGE
        case TransportError():
            return ExitCode.NO_ANSWER
        case _:
            return ExitCode.FAILED


def sentence(error: GantryError) -> str:
    """What happened and, where it is known, what to do about it."""
    text = str(error)
    hint = ""
    # A broker that failed has said why in its remark, or nothing helps but its log.
    if isinstance(error, RequestRefused) and error.code != ResponseCode.SYSTEM_ERROR:
        hint = error.hint
    elif isinstance(error, TransportError):
        hint = "Check the address (-n or NAMESRV_ADDR, -b) and that the server runs."
    if not hint or hint in text:
        return text
    return f"{text.rstrip('. ')}. {hint}"


class Session:
    """One run of a command. `namesrv_addr` and `rpc_hooks` are for clients beside the admin's."""

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

    async def change(self, done: str, act: Callable[[], Awaitable[Any]]) -> None:
        """Do it and print that it is done; with --dry-run only print what would be done."""
        if self.dry_run:
            self.out.say(f"[dry run] {done}")
            return
        await act()
        self.out.say(done)

    def warn(self, text: str) -> None:
        """Tell people something beside the answer, on the error stream."""
        self._errors.write(f"mqadmin: {text}\n")

    def failed(self, error: GantryError) -> None:
        """Tell a failure and go on; the command ends with the exit code of the first one."""
        self.warn(sentence(error))
        self._exit_code = self._exit_code or exit_code_of(error)

    def finish(self) -> None:
        """Raise SomeFailed when something failed on the way."""
        if self._exit_code is not ExitCode.DONE:
            raise SomeFailed(self._exit_code)

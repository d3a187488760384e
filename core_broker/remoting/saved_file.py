"""Saves of a small file that requests change, and the answers that wait for a save.

One save runs at a time. Changes during a save wait for the next save. A save encodes the content at
the start of the save: any number of simultaneous changes costs at most two encodings and writes.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from core_broker.durable_files import replace_file
from core_broker.errors import RequestRefused
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection

log = logging.getLogger(__name__)

#: Maximum pending changes of one file, over all connections.
PENDING_CHANGES_MAX = 1_024


class SavedFile:
    """A small file that is replaced as a whole, off the event loop.

    After the answer SUCCESS to a request, the saved content (or later content) survives a power
    cut. `encode` returns the present content; `write` replaces the file by parts, in a thread.
    """

    def __init__(
        self,
        path: Path,
        encode: Callable[[], bytes],
        write: Callable[[Path, Sequence[bytes]], None] = replace_file,
    ) -> None:
        self.path = path
        self._encode = encode
        self._write = write
        self._waiting: list[tuple[Connection, RemotingCommand]] = []
        self._pending_changes = 0
        self._saving: asyncio.Task[None] | None = None

    def check_capacity(self) -> None:
        """Raise RequestRefused when PENDING_CHANGES_MAX changes wait; call it before a change."""
        if self._pending_changes >= PENDING_CHANGES_MAX:
            raise RequestRefused(
                ResponseCode.SYSTEM_BUSY,
                f"[OVERLOAD]{PENDING_CHANGES_MAX} changes wait for the save of {self.path}; "
                "send fewer changes at a time",
            )

    def answer_when_saved(self, connection: Connection, request: RemotingCommand) -> None:
        """Save the present content, and answer the request with the outcome."""
        # A waiting request needs no fields: their size, unlike the number of requests, is free.
        request.ext_fields, request.body, request.remark = {}, b"", None
        self._waiting.append((connection, request))
        self._pending_changes += 1
        if self._saving is None:
            self._saving = asyncio.get_running_loop().create_task(self._save_waiting())

    async def drain(self) -> None:
        """Wait until every accepted change is on disk."""
        if self._saving is not None:
            await self._saving

    async def _save_waiting(self) -> None:
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            code, remark = await self._save()
            self._pending_changes -= len(waiting)
            for connection, request in waiting:
                connection.answer(request, RemotingCommand.response(code, remark))
        self._saving = None

    async def _save(self) -> tuple[ResponseCode, str | None]:
        try:
            await asyncio.to_thread(self._write, self.path, [self._encode()])
        except (OSError, ValueError) as error:
            log.exception("%s cannot be written", self.path)
            reason = error.strerror if isinstance(error, OSError) else str(error)
            remark = f"changed in memory only: {self.path} cannot be written ({reason})"
            return ResponseCode.SYSTEM_ERROR, remark
        return ResponseCode.SUCCESS, None

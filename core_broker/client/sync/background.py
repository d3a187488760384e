"""The event loop on which all clients without ``await`` run, one thread per process.

It begins with the first client. It ends with the interpreter, after every client that is still
open was stopped. A forked child has none of its parent's threads, so it begins anew.
"""

import asyncio
import atexit
import concurrent.futures
import logging
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Final, Self, TypeVar
from weakref import WeakSet

from core_broker.errors import ClientError

log = logging.getLogger(__name__)

T = TypeVar("T")

#: What one client may take to stop when the interpreter ends.
STOP_TIMEOUT_S: Final = 10.0


class Background:
    """The thread and its loop."""

    def __init__(self) -> None:
        self.clients: WeakSet[SyncClient] = WeakSet()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="core_broker.client", daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        """Run it on the loop; the caller does not wait."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it on the loop and wait for it; an interrupt of the waiting thread cancels it."""
        future = self.submit(work)
        try:
            return future.result()
        finally:
            future.cancel()

    def close(self) -> None:
        """Stop every client and the thread."""
        for client in list(self.clients):
            try:
                client._stop_at_exit()
            except Exception:
                # The shell of the end: one client that does not stop must not keep the others.
                log.exception("%r did not stop", client)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_TIMEOUT_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()


class _Process:
    """The background of this process; made when the first client needs it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._background: Background | None = None

    def background(self) -> Background:
        with self._lock:
            if self._background is None:
                self._background = Background()
            return self._background

    def close(self) -> None:
        with self._lock:
            background, self._background = self._background, None
        if background is not None:
            background.close()

    def forget(self) -> None:
        """In a child after a fork: the thread is not here, and the lock may have been held."""
        self._lock = threading.Lock()
        self._background = None


_process = _Process()
atexit.register(_process.close)
os.register_at_fork(after_in_child=_process.forget)


class SyncClient(ABC):
    """What all clients without ``await`` have in common."""

    def __init__(self) -> None:
        _refuse_in_loop()
        self._pid = os.getpid()
        self._background = _process.background()

    def start(self) -> None:
        """Begin; no server needs to be there yet."""
        self._run(self._start())
        self._background.clients.add(self)

    def stop(self) -> None:
        """End in order; may be called twice."""
        if self in self._background.clients:
            self._background.clients.discard(self)
            self._run(self._stop())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @abstractmethod
    async def _start(self) -> None:
        """Start what is inside, on the loop."""

    @abstractmethod
    async def _stop(self) -> None:
        """Stop it, on the loop."""

    def _stop_at_exit(self) -> None:
        self._background.submit(self._stop()).result(STOP_TIMEOUT_S)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Have the background do it, and wait."""
        try:
            self._check()
        except ClientError:
            work.close()
            raise
        return self._background.run(work)

    def _check(self) -> None:
        _refuse_in_loop()
        if self._pid != os.getpid():
            raise ClientError(f"{self!r} was made before a fork; make a new one in the child.")


def _refuse_in_loop() -> None:
    """Waiting here would block the caller's event loop, and on the background's own for ever."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise ClientError(
        "An event loop is running in this thread: use core_broker.client and await,"
        " or call from another thread."
    )

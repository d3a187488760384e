"""The event loop of all clients without ``await``, on one background thread per process.

The thread starts with the first client. At the end of the interpreter all running clients are
stopped, then the thread ends. A forked child process starts a new thread, because fork() does not
copy the parent's threads.
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

#: Maximum wait for the stop of one client at the end of the interpreter, s.
STOP_TIMEOUT_S: Final = 10.0


class Background:
    """The background thread with the event loop."""

    def __init__(self) -> None:
        self.clients: WeakSet[SyncClient] = WeakSet()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="core_broker.client", daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        """Run a coroutine on the loop, without waiting."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for the result. An exception in the waiting thread,
        for example KeyboardInterrupt, cancels the coroutine."""
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
                # The boundary of each stop: a failing client must not prevent further stops.
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


class _ProcessBackground:
    """The background of the process; created with the first client."""

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
        """Reset in a child process after a fork: the thread does not exist in the child, and a
        parent's thread may have held the lock."""
        self._lock = threading.Lock()
        self._background = None


_process = _ProcessBackground()
atexit.register(_process.close)
os.register_at_fork(after_in_child=_process.forget)


class SyncClient(ABC):
    """The base class of all clients without ``await``."""

    def __init__(self) -> None:
        _refuse_in_loop()
        self._pid = os.getpid()
        self._background = _process.background()

    def start(self) -> None:
        """Start; works before any server is reachable."""
        self._run(self._start())
        self._background.clients.add(self)

    def stop(self) -> None:
        """Stop in order; may be called twice."""
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
        """Start the wrapped client, on the loop."""

    @abstractmethod
    async def _stop(self) -> None:
        """Stop the wrapped client, on the loop."""

    def _stop_at_exit(self) -> None:
        self._background.submit(self._stop()).result(STOP_TIMEOUT_S)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the background, and wait for the result."""
        try:
            self._check()
        except ClientError:
            work.close()
            raise
        return self._background.run(work)

    def _check(self) -> None:
        _refuse_in_loop()
        if self._pid != os.getpid():
            raise ClientError(
                f"{self!r} was created before a fork; create a new client in the child process."
            )


def _refuse_in_loop() -> None:
    """Raise ClientError on a thread with a running event loop: waiting would block the caller's
    loop, and would deadlock the background loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise ClientError(
        "An event loop is running in this thread: use core_broker.client and await,"
        " or call from another thread."
    )

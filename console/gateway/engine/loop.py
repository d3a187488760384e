"""The gateway's event loop: one background thread per process, started on first use."""

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from concurrent.futures import TimeoutError as WaitedTooLong
from typing import Any, TypeVar

from django.utils.translation import gettext_lazy as _

from console.gateway.engine.errors import TooSlow

T = TypeVar("T")

#: Time for cancelled tasks and for the thread to end, seconds each.
STOP_TIMEOUT_S = 5.0


class GatewayLoop:
    """Runs coroutines for threads and for other event loops.

    A fork copies no threads, so the child process starts a new loop.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = 0

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._running())

    def wait(self, work: Coroutine[Any, Any, T], timeout_s: float) -> T:
        """Run a coroutine and block the calling thread; raise TooSlow when the loop is stuck."""
        future = self.submit(work)
        try:
            return future.result(timeout_s)
        except WaitedTooLong:
            future.cancel()
            raise TooSlow(_("The console is too busy to ask the cluster.")) from None

    def stop(self) -> None:
        """Cancel all tasks and stop the thread."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None or self._pid != os.getpid():
            return
        asyncio.run_coroutine_threadsafe(_cancel_all(), loop).result(STOP_TIMEOUT_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(STOP_TIMEOUT_S)
        loop.close()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                self._pid = os.getpid()
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="gateway", daemon=True
                )
                self._thread.start()
            return self._loop


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

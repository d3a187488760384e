"""Threads that call a plain listener on behalf of an event loop.

Not those of `concurrent.futures`: these end with the interpreter only after the consumer was
stopped, so that a program which just ends still consumes its last messages in order.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

A = TypeVar("A")
R = TypeVar("R")

_Job = tuple[A, "asyncio.Future[R]", asyncio.AbstractEventLoop]


class ListenerThreads(Generic[A, R]):
    """At most ``count`` calls at a time; the threads begin with the first calls."""

    def __init__(self, name: str, listener: Callable[[A], R], count: int) -> None:
        self._name = name
        self._listener = listener
        self._count = count
        self._jobs: queue.SimpleQueue[_Job[A, R] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    async def __call__(self, argument: A) -> R:
        """Have a thread call the listener. When the caller is cancelled the call goes on, for a
        thread cannot be stopped, and its outcome is dropped."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        self._jobs.put((argument, future, loop))
        if len(self._threads) < self._count:
            self._begin()
        return await future

    def end(self) -> None:
        """Let each thread end after the call it is in."""
        for _ in self._threads:
            self._jobs.put(None)

    def _begin(self) -> None:
        name = f"{self._name} listener {len(self._threads)}"
        thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            argument, future, loop = job
            try:
                answer = self._listener(argument)
            except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits
                # Of its kinds, futures and threads take sys.exit and the like for their own.
                is_plain = isinstance(error, Exception) and not isinstance(error, StopIteration)
                told = error if is_plain else RuntimeError(f"The listener raised {error!r}.")
                _settle(loop, future, error=told)
            else:
                _settle(loop, future, answer)
            # A thread that waits for its next job must not keep the last message alive.
            del job, argument, future


def _settle(
    loop: asyncio.AbstractEventLoop,
    future: "asyncio.Future[R]",
    answer: R | None = None,
    error: BaseException | None = None,
) -> None:
    def settle() -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(answer)  # type: ignore[arg-type]

    loop.call_soon_threadsafe(settle)

"""Listener threads: call a plain listener on behalf of an event loop.

The threads are not a `concurrent.futures` pool, because the interpreter joins pool threads before
exit handlers run. Listener threads work until the exit handler has stopped the consumer, so a
program ending without a stop still finishes the running listener calls.
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
    """A pool of at most ``count`` threads, started with the first calls."""

    def __init__(self, name: str, listener: Callable[[A], R], count: int) -> None:
        self._name = name
        self._listener = listener
        self._count = count
        self._jobs: queue.SimpleQueue[_Job[A, R] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    async def __call__(self, argument: A) -> R:
        """Call the listener on a thread. After a cancellation of the caller the call continues,
        because a thread cannot be stopped, and the outcome is dropped."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        self._jobs.put((argument, future, loop))
        if len(self._threads) < self._count:
            self._begin()
        return await future

    def end(self) -> None:
        """End each thread after the running call."""
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
            except BaseException as error:  # noqa: BLE001 - the caller receives the error
                # Wrap StopIteration, refused by futures, and SystemExit and KeyboardInterrupt,
                # which would end the event loop.
                is_plain = isinstance(error, Exception) and not isinstance(error, StopIteration)
                failure = error if is_plain else RuntimeError(f"The listener raised {error!r}.")
                _settle(loop, future, error=failure)
            else:
                _settle(loop, future, answer)
            # An idle thread must not keep the last message alive.
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

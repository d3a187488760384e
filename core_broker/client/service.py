"""The base class of producers and consumers: start, stop, and a warning for a missing stop."""

import warnings
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Service(ABC):
    """`async with` starts and stops a service; garbage collection of a running service raises a
    ResourceWarning."""

    #: True, or the running part of the service, between `start` and `stop`.
    _running: object = None

    @abstractmethod
    async def start(self) -> None:
        """Start the service."""

    @abstractmethod
    async def stop(self) -> None:
        """Stop the service in order; may be called twice."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    def __del__(self) -> None:
        if self._running:
            warnings.warn(f"{self!r} was dropped without stop()", ResourceWarning, stacklevel=2)

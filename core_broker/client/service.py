"""What producers and consumers have in common: they are started once and must be stopped."""

import warnings
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Service(ABC):
    """`async with` starts and stops it; one that is dropped while it runs warns."""

    #: True, or what runs, between `start` and `stop`.
    _running: object = None

    @abstractmethod
    async def start(self) -> None:
        """Begin."""

    @abstractmethod
    async def stop(self) -> None:
        """End in order; may be called twice."""

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

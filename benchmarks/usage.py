"""CPU time and memory of a program with all its child processes, from samples."""

from threading import Event, Thread
from types import TracebackType
from typing import Final, Self

import psutil

SAMPLE_SECONDS: Final = 0.2
MB: Final = 1_000_000


class Usage:
    """Samples a program until the end of the `with` block.

    CPU time after the last sample of a child process is missing.
    """

    def __init__(self, pid: int) -> None:
        self._program = psutil.Process(pid)
        self._cpu_s: dict[int, float] = {}
        #: Maximum sum of the proportional set sizes: shared pages count once.
        self.memory_bytes_max = 0
        self._is_over = Event()
        self._thread = Thread(target=self._watch, name="usage")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()

    @property
    def cpu_seconds(self) -> float:
        """CPU time so far, user and system, also of ended processes."""
        return sum(self._cpu_s.copy().values())

    def _watch(self) -> None:
        while not self._is_over.wait(SAMPLE_SECONDS):
            self._sample()

    def _sample(self) -> None:
        memory_bytes = 0
        try:
            programs = [self._program, *self._program.children(recursive=True)]
        except psutil.Error:
            return
        for program in programs:
            try:
                times = program.cpu_times()
                self._cpu_s[program.pid] = times.user + times.system
                memory_bytes += program.memory_full_info().pss
            except psutil.Error:  # the process has ended, or is a zombie
                continue
        self.memory_bytes_max = max(self.memory_bytes_max, memory_bytes)

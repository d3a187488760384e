"""Samples of earlier evaluations of one cluster, for rules that compare two times. Pure.

Each console process keeps its own samples: after a start, the rules wait for the second sample.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from console.gateway.health.members import QueueKey

#: Maximum number of samples, and minimum distance between two, ms: together half an hour.
SAMPLES_MAX = 90
SAMPLE_EVERY_MS = 20_000


@dataclass(frozen=True, slots=True)
class Disk:
    """Usage of a broker's disk, bytes."""

    used_bytes: float
    total_bytes: int


@dataclass(frozen=True, slots=True)
class Sample:
    """Values of one evaluation.

    `dead_letters` has the groups with dead letters; `complete`: all other groups had none.
    `offsets` has the consumer offsets of the queues with lag, by diagnosed group. `lags` has the
    groups with lag, `owners` a digest of the owners of the queues, by newly diagnosed group.
    """

    at_ms: int
    dead_letters: Mapping[str, int]
    complete: bool
    disks: Mapping[str, Disk]
    offsets: Mapping[str, Mapping[QueueKey, int]]
    lags: Mapping[str, int]
    owners: Mapping[str, int]

    def lag(self, group: str) -> int | None:
        """Return the lag of a group; None in a sample that may lack the group."""
        return self.lags.get(group, 0 if self.complete else None)


class Samples:
    """The latest samples in order of time, at most SAMPLES_MAX."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=SAMPLES_MAX)

    def __len__(self) -> int:
        return len(self._samples)

    def add(self, sample: Sample) -> None:
        """Keep the sample, unless the last one is younger than SAMPLE_EVERY_MS."""
        if not self._samples or sample.at_ms - self._samples[-1].at_ms >= SAMPLE_EVERY_MS:
            self._samples.append(sample)

    def within(self, now_ms: int, window_ms: int) -> Sample | None:
        """Return the oldest sample in the window; without one, the latest before the window."""
        inside = (each for each in self._samples if each.at_ms >= now_ms - window_ms)
        return next(inside, self._samples[-1] if self._samples else None)

    def before(self, at_ms: int) -> Sample | None:
        """Return the latest sample of `at_ms` or earlier."""
        earlier = (each for each in reversed(self._samples) if each.at_ms <= at_ms)
        return next(earlier, None)

    def since(self, at_ms: int) -> list[Sample]:
        """Return the samples of `at_ms` or later, in order of time."""
        return [each for each in self._samples if each.at_ms >= at_ms]

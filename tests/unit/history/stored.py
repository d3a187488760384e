"""A cluster's history written in compressed time."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from console.services.history.files import FilePlace
from console.services.history.metrics import BY_NAME, HOUR_MS, INTERVAL_MS, MINUTE_MS, Scope
from console.services.history.store import Place
from console.services.history.upkeep import Upkeep
from console.services.history.writing import Writer

#: A midnight, UTC.
DAY_0_MS = 1_762_300_800_000
GIBIBYTE = 1 << 30


class Recorder:
    """Writes samples of one metric, with the upkeep of the sampler after each."""

    def __init__(self, place: Path | Place, keep_days: int, bytes_max: int) -> None:
        self.store = (FilePlace(place) if isinstance(place, Path) else place).writer()
        self.writer = Writer(self.store)
        self.upkeep = Upkeep(
            self.store, self.writer.reload, keep_days=keep_days, bytes_max=bytes_max
        )

    def put(
        self, at_ms: int, scope: Scope, metric: str, values: Mapping[str, float | None]
    ) -> None:
        self.writer.append(at_ms, {BY_NAME[scope, metric].number: dict(values)}, {})

    def keep(self, now_ms: int) -> None:
        assert self.upkeep.run(now_ms, lambda: True)

    def fill(
        self,
        begin_ms: int,
        end_ms: int,
        value: Callable[[int], float | None],
        *,
        every_ms: int = INTERVAL_MS,
        name: str = "orders",
    ) -> None:
        """Write the topic's produce rate at each time, and run the upkeep once an hour."""
        for at_ms in range(begin_ms, end_ms, every_ms):
            self.put(at_ms, "topic", "produce_rate", {name: value(at_ms)})
            if at_ms % HOUR_MS < every_ms and at_ms - begin_ms >= every_ms:
                self.keep(at_ms + MINUTE_MS)

    def count(self, table: str) -> int:
        return int(self.read(f"SELECT count(*) FROM {{t}}{table} WHERE {{own}}")[0][0])

    def read(self, template: str) -> list[tuple[Any, ...]]:
        return self.store._read(template, ())

    def change(self, template: str, *values: Any) -> None:
        self.store._change(template, values)


@contextmanager
def recorder(
    place: Path | Place, *, keep_days: int = 30, bytes_max: int = GIBIBYTE
) -> Iterator[Recorder]:
    found = Recorder(place, keep_days, bytes_max)
    try:
        yield found
    finally:
        found.store.close()

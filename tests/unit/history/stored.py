"""A cluster's history file written in compressed time."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from console.services.history.files import open_writer
from console.services.history.metrics import BY_NAME, INTERVAL_MS, Scope
from console.services.history.upkeep import Upkeep
from console.services.history.writing import Writer

#: A midnight, UTC.
DAY_0_MS = 1_762_300_800_000
GIBIBYTE = 1 << 30


class Recorder:
    """Writes samples of one metric, with the upkeep of the sampler after each."""

    def __init__(self, path: Path, keep_days: int, bytes_max: int) -> None:
        self.db = open_writer(path)
        self.writer = Writer(self.db)
        self.upkeep = Upkeep(self.db, self.writer.reload, keep_days=keep_days, bytes_max=bytes_max)

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
            if at_ms % 3_600_000 == 60_000:
                self.keep(at_ms)

    def count(self, table: str) -> int:
        return int(self.db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


@contextmanager
def recorder(path: Path, *, keep_days: int = 30, bytes_max: int = GIBIBYTE) -> Iterator[Recorder]:
    found = Recorder(path, keep_days, bytes_max)
    try:
        yield found
    finally:
        found.db.close()

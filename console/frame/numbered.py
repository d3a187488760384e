"""Lists of rows whose numbers are known for all at once, or asked for as far as a page needs them.

    numbered = Numbered(cluster, found, known_topic_numbers, numbers_of, all_needed=by_a_number)
    lines = [TopicLine(row, numbered.of(row.name)) for row in found]
    page = query.page(lines)
    numbered.fill(page.rows)       # asks about those that are shown and not known yet

`all_needed` is for lists that are ordered or filtered by a number: of the rows that are not known
SCAN_MAX are asked about, and `left_out` says how many were not. `all_known` is true when every row
has been told or asked about, so that lines may be counted by their numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, Protocol, TypeVar

from console.frame.tables import Named
from console.gateway import Answer, BrokerFailure, Cluster, merge_failures
from console.gateway.engine.questions import Question
from console.gateway.metrics import SCAN_MAX, BulkMetrics

N = TypeVar("N")


class Line(Named, Protocol):
    """A dataclass of a row and its numbers."""

    @property
    def numbers(self) -> Any: ...


L = TypeVar("L", bound=Line)


class Numbered(Generic[N]):
    """The numbers behind one list."""

    def __init__(
        self,
        cluster: Cluster,
        rows: Sequence[Named],
        known: Question[[], BulkMetrics[N]],
        ask: Question[[tuple[str, ...]], Mapping[str, N]],
        *,
        all_needed: bool,
    ) -> None:
        answer = cluster.ask(known)
        self.failures = answer.failures
        self.asked_at_ms = answer.value.taken_ms or answer.asked_at_ms
        self.left_out = 0
        missing = [row.name for row in rows if row.name not in answer.value.by_name]
        self.all_known = not missing or (all_needed and len(missing) <= SCAN_MAX)
        self._cluster = cluster
        self._ask = ask
        self._known = answer.value.by_name
        self._asked: dict[str, N] = {}
        if all_needed:
            self.left_out = max(0, len(missing) - SCAN_MAX)
            self._ask_about(missing[:SCAN_MAX])

    def of(self, name: str) -> N | None:
        known = self._known.get(name)
        return self._asked.get(name) if known is None else known

    def fill(self, lines: list[L]) -> None:
        """Give the lines that are shown their numbers."""
        missing = [line.name for line in lines if line.numbers is None]
        if missing:
            self._ask_about([name for name in missing if name not in self._asked])
            lines[:] = [
                line if line.numbers is not None else _with(line, self.of(line.name))
                for line in lines
            ]

    def told(self, failures: tuple[BrokerFailure, ...]) -> Answer[None]:
        """When the numbers are from, and which brokers are missing from them or the rows."""
        return Answer(None, merge_failures(failures, self.failures), self.asked_at_ms)

    def _ask_about(self, names: Sequence[str]) -> None:
        if not names:
            return
        answer = self._cluster.ask(self._ask, tuple(names))
        self._asked.update(answer.value)
        self.failures = merge_failures(self.failures, answer.failures)


def _with(line: L, numbers: object) -> L:
    return replace(line, numbers=numbers)  # type: ignore[type-var]

"""Metrics of the rows of one list: bulk metrics first, then requests by name for the rest.

    metrics = RowMetrics(cluster, rows, bulk_question, named_question, all_needed=sorts_by_metric)
    lines = [TopicLine(row, metrics.of(row.name)) for row in rows]
    page = query.page(lines)
    metrics.fill(page.rows)        # requests the metrics of shown rows without bulk metrics

Set `all_needed` when a metric decides the order or the filter of the list. The constructor then
requests the metrics of the first SCAN_MAX rows without bulk metrics; `left_out` counts the rows
beyond SCAN_MAX. `all_known` is true when every row has bulk metrics or was requested by name, so
that filters on metrics can show counts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, Protocol, TypeVar

from console.frame.tables import Named
from console.gateway import Answer, BrokerFailure, Cluster, merge_failures
from console.gateway.engine.questions import Question
from console.gateway.metrics import SCAN_MAX, BulkMetrics

M = TypeVar("M")


def metric(get: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the value of a list's column: `get` of the row's metrics, None for unknown metrics."""
    return lambda line: get(line.numbers) if line.numbers is not None else None


class MetricsLine(Named, Protocol):
    """A dataclass with a row of a list and the row's metrics; None for unknown metrics."""

    @property
    def numbers(self) -> Any: ...


L = TypeVar("L", bound=MetricsLine)


class RowMetrics(Generic[M]):
    """The metrics of one list. Raises the gateway's errors when the cluster does not answer."""

    def __init__(
        self,
        cluster: Cluster,
        rows: Sequence[Named],
        bulk_question: Question[[], BulkMetrics[M]],
        named_question: Question[[tuple[str, ...]], Mapping[str, M]],
        *,
        all_needed: bool,
    ) -> None:
        answer = cluster.ask(bulk_question)
        self.failures = answer.failures
        self.asked_at_ms = answer.value.taken_ms or answer.asked_at_ms
        self.left_out = 0
        missing = [row.name for row in rows if row.name not in answer.value.by_name]
        self.all_known = not missing or (all_needed and len(missing) <= SCAN_MAX)
        self._cluster = cluster
        self._named_question = named_question
        self._bulk = answer.value.by_name
        self.measured_ms = answer.value.measured_ms
        self._requested: dict[str, M] = {}
        if all_needed:
            self.left_out = max(0, len(missing) - SCAN_MAX)
            self._request(missing[:SCAN_MAX])

    def of(self, name: str) -> M | None:
        """Return the metrics of one row; None for a row that was not requested or not found."""
        metrics = self._bulk.get(name)
        return self._requested.get(name) if metrics is None else metrics

    def fill(self, lines: list[L]) -> None:
        """Replace the lines without metrics by lines with metrics, in place."""
        missing = [line.name for line in lines if line.numbers is None]
        if missing:
            self._request([name for name in missing if name not in self._requested])
            lines[:] = [
                line if line.numbers is not None else _with(line, self.of(line.name))
                for line in lines
            ]

    def as_answer(self, failures: tuple[BrokerFailure, ...]) -> Answer[None]:
        """Return the time of the metrics, with the failures of the metrics and of the rows."""
        return Answer(None, merge_failures(failures, self.failures), self.asked_at_ms)

    def _request(self, names: Sequence[str]) -> None:
        if not names:
            return
        answer = self._cluster.ask(self._named_question, tuple(names))
        self._requested.update(answer.value)
        self.failures = merge_failures(self.failures, answer.failures)


def _with(line: L, metrics: object) -> L:
    return replace(line, numbers=metrics)  # type: ignore[type-var]

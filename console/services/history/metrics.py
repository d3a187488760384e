"""The metrics of the history: what is measured, of what, and what each minute keeps. Pure."""

from dataclasses import dataclass
from typing import Any, Final, Literal

from django.utils.translation import gettext_lazy as _

Scope = Literal["cluster", "topic", "group", "broker"]
Aggregate = Literal["avg", "min", "max", "last"]

#: Interval of the sampler, ms.
INTERVAL_MS: Final = 10_000
#: Resolution of the history after a day, ms.
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 86_400_000

#: Numbers of the scopes in files; never given to another scope.
SCOPES: Final[dict[Scope, int]] = {"cluster": 0, "topic": 1, "group": 2, "broker": 3}


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of a scope.

    `number` names the metric in files and is never given to another metric. `kept` lists the
    aggregates of a minute; the first is the value of a point. Counts are `exact`; other values are
    rounded to a relative error of 0.025 %.
    """

    number: int
    scope: Scope
    name: str
    unit: str
    kept: tuple[Aggregate, ...]
    label: Any
    exact: bool = False


METRICS: Final = (
    Metric(1, "cluster", "produce_rate", "msg/s", ("avg", "min", "max"), _("Produce rate")),
    Metric(2, "cluster", "consume_rate", "msg/s", ("avg", "min", "max"), _("Consume rate")),
    Metric(3, "cluster", "lag", "messages", ("avg", "min", "max"), _("Lag"), exact=True),
    Metric(
        4, "cluster", "dead_letters", "messages", ("last", "max"), _("Dead letters"), exact=True
    ),
    Metric(5, "cluster", "disk_ratio", "ratio", ("last", "max"), _("Fullest disk")),
    Metric(20, "topic", "produce_rate", "msg/s", ("avg", "max"), _("Produce rate")),
    Metric(21, "topic", "consume_rate", "msg/s", ("avg", "max"), _("Consume rate")),
    Metric(22, "topic", "lag", "messages", ("avg", "max"), _("Highest lag"), exact=True),
    Metric(40, "group", "consume_rate", "msg/s", ("avg", "max"), _("Consume rate")),
    Metric(41, "group", "lag", "messages", ("avg", "max"), _("Lag"), exact=True),
    Metric(42, "group", "lag_s", "s", ("avg", "max"), _("Lag (time)")),
    Metric(43, "group", "dead_letters", "messages", ("last", "max"), _("Dead letters"), exact=True),
    Metric(44, "group", "clients", "clients", ("last", "min"), _("Clients"), exact=True),
    Metric(60, "broker", "produce_rate", "msg/s", ("avg", "min", "max"), _("Produce rate")),
    Metric(61, "broker", "consume_rate", "msg/s", ("avg", "min", "max"), _("Consume rate")),
    Metric(62, "broker", "disk_ratio", "ratio", ("last", "max"), _("Disk")),
    Metric(63, "broker", "connections", "clients", ("avg", "min", "max"), _("Clients"), exact=True),
    Metric(64, "broker", "send_p99_ms", "ms", ("avg", "max"), _("Produce latency p99")),
    Metric(65, "broker", "replica_lag", "bytes", ("avg", "max"), _("Replication lag")),
)
BY_NAME: Final = {(metric.scope, metric.name): metric for metric in METRICS}
BY_NUMBER: Final = {metric.number: metric for metric in METRICS}


def names_of(scope: Scope) -> tuple[str, ...]:
    """The names of a scope's metrics."""
    return tuple(metric.name for metric in METRICS if metric.scope == scope)


def broker_name(name: str, broker_id: int) -> str:
    """Return the name of a broker process in the history: that of the master is the broker's."""
    return f"{name}#{broker_id}" if broker_id else name

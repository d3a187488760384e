"""Metrics of alarms at /metrics, counted in the database at each request."""

import logging
from collections.abc import Iterable, Iterator
from typing import Final

from django.db import DatabaseError
from django.db.models import Count
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from console.metrics import REGISTRY
from console.services.alarms.models import Delivery, DeliveryState, Episode, EpisodeState
from console.services.findings.finding import Severity

log = logging.getLogger(__name__)

FIRING: Final = "gantry_console_alarms_firing"
DELIVERIES: Final = "gantry_console_alarm_deliveries"


class AlarmMetrics(Collector):
    """Firing alarms by cluster and severity, deliveries by outcome."""

    def describe(self) -> Iterable[Metric]:
        return (_firing(), _deliveries())

    def collect(self) -> Iterator[Metric]:
        firing, deliveries = _firing(), _deliveries()
        try:
            rows = Episode.objects.filter(state=EpisodeState.FIRING)
            counts = rows.values_list("cluster", "severity").annotate(Count("pk"))
            by_key = {(cluster, severity): count for cluster, severity, count in counts.order_by()}
            states = Delivery.objects.values_list("state").annotate(Count("pk")).order_by()
            outcomes = dict(states)
        except DatabaseError:
            log.warning("the alarms cannot be counted", exc_info=True)
            return
        for cluster in sorted({cluster for cluster, _severity in by_key}):
            for severity in Severity:
                firing.add_metric([cluster, severity], by_key.get((cluster, severity), 0))
        for state in DeliveryState.values:
            deliveries.add_metric([state], outcomes.get(state, 0))
        yield firing
        yield deliveries


def _firing() -> GaugeMetricFamily:
    return GaugeMetricFamily(FIRING, "Alarms that fire.", labels=["cluster", "severity"])


def _deliveries() -> GaugeMetricFamily:
    text = "Notices of the last 90 days by outcome: waiting, sent, failed."
    return GaugeMetricFamily(DELIVERIES, text, labels=["outcome"])


def register() -> None:
    """Register the metrics once per process."""
    REGISTRY.register(AlarmMetrics())

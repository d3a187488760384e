"""The report that pages and REST requests show: the last one of the worker, with its age.

Without a worker, or while it does not evaluate, a request evaluates in its own process.
"""

import logging

from django.db import DatabaseError

from console.gateway import Cluster, now_ms
from console.services.findings import stored
from console.services.findings.evaluation import REPORT_AGE_MAX_MS, evaluator_of
from console.services.findings.finding import Report

log = logging.getLogger(__name__)


def current_report(cluster: Cluster) -> Report:
    """Return the last report; evaluate when none is younger than REPORT_AGE_MAX_MS.

    Raises GatewayError as `Cluster.ask`.
    """
    return _of_worker(cluster) or evaluator_of(cluster).report(cluster)


def latest_report(cluster: Cluster) -> Report | None:
    """Return the last report if younger than REPORT_AGE_MAX_MS, without an evaluation."""
    return _of_worker(cluster) or evaluator_of(cluster).latest


def _of_worker(cluster: Cluster) -> Report | None:
    try:
        return stored.load(cluster, now_ms() - REPORT_AGE_MAX_MS)
    except DatabaseError:
        log.warning("the report of %s cannot be read", cluster, exc_info=True)
        return None

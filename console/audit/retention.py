"""Retention of audit rows: AUDIT_DAYS days, and at most AUDIT_ROWS_MAX rows.

Denied requests have a separate limit, so that a flood of denied requests does not displace the rows
of actions.
"""

import logging
from datetime import datetime, timedelta
from typing import Any

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from console.audit.models import AuditRow, Result

log = logging.getLogger(__name__)

#: Interval between prunes, rows; also prunes without a scheduler.
ROWS_BETWEEN_PRUNES = 500
DENIED_ROWS_MAX = 20_000
#: Rows per DELETE statement, so that the table is locked only briefly.
ROWS_AT_ONCE = 5_000


@shared_task(name="console.audit.prune")
def prune_on_schedule() -> None:
    prune()


def prune_after_insert(pk: int) -> None:
    """Prune after every ROWS_BETWEEN_PRUNES added rows."""
    if pk % ROWS_BETWEEN_PRUNES == 0:
        prune()


def prune(now: datetime | None = None) -> int:
    """Remove rows beyond the age and number limits; return the number of removed rows."""
    oldest = (now or timezone.now()) - timedelta(days=settings.AUDIT_DAYS)
    acts = AuditRow.house.exclude(result=Result.DENIED)
    denials = AuditRow.house.filter(result=Result.DENIED)
    removed = _remove(AuditRow.house.filter(at__lt=oldest))
    removed += _remove(_beyond(acts, settings.AUDIT_ROWS_MAX))
    removed += _remove(_beyond(denials, DENIED_ROWS_MAX))
    if removed:
        log.info("removed %d old rows of the audit log", removed)
    return removed


def _beyond(rows: Any, most: int) -> Any:
    """Return the rows beyond the newest `most` rows."""
    last = list(rows.order_by("-pk").values_list("pk", flat=True)[most : most + 1])
    return rows.filter(pk__lte=last[0]) if last else rows.none()


def _remove(rows: Any) -> int:
    removed = 0
    while keys := list(rows.order_by("pk").values_list("pk", flat=True)[:ROWS_AT_ONCE]):
        removed += AuditRow.house.filter(pk__in=keys).delete()[0]
    return removed

"""How long rows stay: AUDIT_DAYS days, and never more than AUDIT_ROWS_MAX of them.

Denied attempts are counted apart, so that somebody who is refused a million times cannot push out
what others did.
"""

import logging
from datetime import datetime, timedelta
from typing import Any

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from console.audit.models import AuditRow, Result

log = logging.getLogger(__name__)

#: Every so many rows the oldest are looked at, also where no scheduler runs.
ROWS_BETWEEN_LOOKS = 500
DENIED_ROWS_MAX = 20_000
#: Rows deleted by one statement, so that nobody waits long for the table.
ROWS_AT_ONCE = 5_000


@shared_task(name="console.audit.prune")
def prune_on_schedule() -> None:
    prune()


def make_room(pk: int) -> None:
    """After a row was added: now and then remove the oldest."""
    if pk % ROWS_BETWEEN_LOOKS == 0:
        prune()


def prune(now: datetime | None = None) -> int:
    """Remove rows that are too old or too many; returns how many."""
    oldest = (now or timezone.now()) - timedelta(days=settings.AUDIT_DAYS)
    acts = AuditRow.house.exclude(result=Result.DENIED)
    denials = AuditRow.house.filter(result=Result.DENIED)
    removed = _remove(AuditRow.house.filter(at__lt=oldest))
    removed += _remove(_beyond(acts, settings.AUDIT_ROWS_MAX))
    removed += _remove(_beyond(denials, DENIED_ROWS_MAX))
    if removed:
        log.info("%d old rows of the audit list were removed", removed)
    return removed


def _beyond(rows: Any, most: int) -> Any:
    """The rows after the newest `most`."""
    last = list(rows.order_by("-pk").values_list("pk", flat=True)[most : most + 1])
    return rows.filter(pk__lte=last[0]) if last else rows.none()


def _remove(rows: Any) -> int:
    removed = 0
    while keys := list(rows.order_by("pk").values_list("pk", flat=True)[:ROWS_AT_ONCE]):
        removed += AuditRow.house.filter(pk__in=keys).delete()[0]
    return removed

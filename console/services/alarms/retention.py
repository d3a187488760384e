"""Old episodes and deliveries are deleted, once an hour in each process that evaluates."""

from typing import Any, Final

from django.db.models import Exists, OuterRef

from console.services.alarms.models import Delivery, DeliveryState, Episode, EpisodeState, Notified

KEPT_MS: Final = 90 * 24 * 3_600_000
#: Maximum number of resolved episodes, and of finished deliveries.
ROWS_MAX: Final = 20_000
EVERY_MS: Final = 3_600_000

_pruned_ms = 0


def prune(now_ms: int, *, every_ms: int = EVERY_MS) -> None:
    """Delete what is older than KEPT_MS, and the oldest rows beyond ROWS_MAX."""
    global _pruned_ms  # noqa: PLW0603 - one time per process
    if 0 <= now_ms - _pruned_ms < every_ms:
        return
    _pruned_ms = now_ms
    resolved = Episode.objects.filter(state=EpisodeState.RESOLVED)
    _bound(resolved, resolved.filter(resolved_ms__lt=now_ms - KEPT_MS))
    # The notices of an episode that still fires say who gets the resolved notice.
    still_fires = Notified.objects.filter(
        delivery=OuterRef("pk"), episode__state=EpisodeState.FIRING
    )
    finished = Delivery.objects.exclude(state=DeliveryState.WAITING).filter(~Exists(still_fires))
    _bound(finished, finished.filter(created_ms__lt=now_ms - KEPT_MS))


def _bound(rows: Any, old: Any) -> None:
    old.delete()
    excess = rows.count() - ROWS_MAX
    if excess > 0:
        oldest = list(rows.order_by("pk").values_list("pk", flat=True)[:excess])
        for begin in range(0, len(oldest), 500):
            rows.model.objects.filter(pk__in=oldest[begin : begin + 500]).delete()

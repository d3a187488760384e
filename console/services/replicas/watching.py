"""Observations of the history's sampler become role changes in Django's database.

The sampler looks every ten seconds: shorter roles are seen by skipped epochs only. Clusters without
replicas store nothing.
"""

import logging
from typing import Any, Final

from django.db import DatabaseError, transaction

from console.gateway.replicas.electing import ElectionResult
from console.gateway.replicas.model import ReplicaSet, ReplicaSets
from console.services.history.metrics import INTERVAL_MS
from console.services.replicas.causes import Seen, cause_of, is_change, seen_in
from console.services.replicas.models import NAME_CHARS_MAX, Cause, RoleChange, WatchSpan

log = logging.getLogger(__name__)

#: Longest time between two observations of a watch without a gap, ms.
GAP_MS: Final = 4 * INTERVAL_MS
#: Maximum number of role changes, and of spans, that are kept of a cluster.
CHANGES_MAX: Final = 2_000
SPANS_MAX: Final = 500


def observe_sample(sender: object, *, cluster: str, found: Any, at_ms: int, **_: Any) -> None:
    """Store what a sample of the history says about replica sets; the receiver of `sampled`."""
    sets: ReplicaSets | None = found.replica_sets
    if sets is None:
        return
    try:
        observe(cluster, sets, at_ms)
    except DatabaseError:
        log.warning("the masters of %s cannot be stored", cluster, exc_info=True)


def observe(cluster: str, sets: ReplicaSets, at_ms: int) -> None:
    """Store the changes since the observation before, and extend the watched time."""
    watched = [one for one in sets.sets if one.mode != "single" and len(one.name) <= NAME_CHARS_MAX]
    if not watched:
        return
    with transaction.atomic():
        span = WatchSpan.objects.filter(cluster=cluster).order_by("-end_ms").first()
        is_resumed = span is not None and at_ms - span.end_ms > GAP_MS
        seen_ms = at_ms if span is None else span.end_ms
        if span is None or is_resumed:
            WatchSpan.objects.create(cluster=cluster, begin_ms=at_ms, end_ms=at_ms)
            _keep_newest(WatchSpan, cluster, SPANS_MAX)
        elif at_ms > span.end_ms:
            WatchSpan.objects.filter(pk=span.pk).update(end_ms=at_ms)
        stored = [_observe_set(cluster, one, seen_ms, at_ms, is_resumed) for one in watched]
        if any(stored):
            _keep_newest(RoleChange, cluster, CHANGES_MAX)


def _observe_set(
    cluster: str, found: ReplicaSet, seen_ms: int, at_ms: int, is_resumed: bool
) -> bool:
    last = RoleChange.objects.filter(cluster=cluster, name=found.name).order_by("-pk").first()
    if last is not None and last.at_ms > at_ms:
        return False  # an election of this console after the beginning of the sample
    before = None if last is None else _seen(last)
    now = seen_in(found, before)
    if not is_change(before, now):
        return False
    RoleChange.objects.create(
        cluster=cluster,
        name=found.name,
        at_ms=at_ms,
        addr=now.addr[:NAME_CHARS_MAX],
        number=now.number,
        epoch=now.epoch,
        previous_addr="" if before is None else before.last_addr,
        previous_number=None if before is None else before.last_number,
        previous_epoch=None if before is None else before.epoch,
        cause=cause_of(before, now, found, seen_ms, is_resumed=is_resumed),
    )
    return True


def _seen(last: RoleChange) -> Seen:
    newest = (last.addr, last.number) if last.addr else (last.previous_addr, last.previous_number)
    return Seen(last.addr, last.number, last.epoch, *newest)


def record_election(cluster: str, result: ElectionResult, username: str) -> None:
    """Store an election by this console, also when the sampler has seen the new master first."""
    if not result.addr:
        return
    with transaction.atomic():
        last = RoleChange.objects.filter(cluster=cluster, name=result.name).order_by("-pk").first()
        if last is not None and (last.addr, last.epoch) == (result.addr, result.epoch):
            last.cause, last.username = Cause.OPERATOR, username
            last.save(update_fields=["cause", "username"])
            return
        RoleChange.objects.create(
            cluster=cluster,
            name=result.name,
            at_ms=result.elected_ms,
            addr=result.addr,
            number=result.number,
            epoch=result.epoch,
            previous_addr=result.before_addr or "",
            previous_number=result.before_number,
            previous_epoch=result.before_epoch,
            cause=Cause.OPERATOR,
            username=username,
        )
        _keep_newest(RoleChange, cluster, CHANGES_MAX)


def _keep_newest(model: type[RoleChange] | type[WatchSpan], cluster: str, most: int) -> None:
    rows = model.objects.filter(cluster=cluster)
    excess = rows.count() - most
    if excess > 0:
        oldest = rows.order_by("pk").values_list("pk", flat=True)[:excess]
        rows.filter(pk__in=list(oldest)).delete()

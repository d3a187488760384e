"""Rules about members of groups: subscriptions, stuck queues, skewed queues, idle clients."""

from collections.abc import Iterator, Mapping

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.frame import formats
from console.gateway.groups.progress import GroupQueue
from console.gateway.health.members import GroupDiagnosis, QueueKey
from console.services.findings.finding import Finding, NotChecked, Severity, Target
from console.services.findings.rules.rule import Duration, Evidence, Results, listing, rule

#: A lag is skewed when one of at least SKEW_QUEUES_MIN queues has SKEW_RATIO of a lag of at least
#: SKEW_LAG_MIN messages.
SKEW_QUEUES_MIN = 4
SKEW_RATIO = 0.8
SKEW_LAG_MIN = 1_000
#: Maximum number of queues in the evidence of a stuck group.
QUEUES_SHOWN_MAX = 50


@rule("subscription-conflict", _("Clients of a group have equal subscriptions"))
def subscription_conflict(evidence: Evidence) -> Results:
    """Clients of one group with different topics or filters. A broker keeps one subscription per
    group: messages for the other client are skipped without an error."""
    yield from undiagnosed(evidence)
    for each in _diagnosed(evidence):
        yield from _silent(each)
        known = [(one.client_id, one.subscriptions) for one in each.members]
        kinds: dict[frozenset[tuple[str, str, str]], list[str]] = {}
        for client_id, subscriptions in known:
            if subscriptions is not None:
                kinds.setdefault(subscriptions, []).append(client_id)
        if len(kinds) < 2:
            continue
        sets = sorted(kinds, key=lambda one: (-len(kinds[one]), sorted(one)))
        different = frozenset.union(*sets) - frozenset.intersection(*sets)
        topics = sorted({topic for topic, _kind, _expression in different})
        yield Finding(
            "subscription-conflict",
            Severity.CRITICAL,
            Target("group", each.group),
            format_lazy(
                _("{count} different subscriptions in one group; they differ in {topics}."),
                count=len(kinds),
                topics=listing(topics),
            ),
            _(
                "Give all clients of the group the same topics and filters, or give each "
                "application a group of its own. Until then messages are skipped."
            ),
            {
                "subscriptions": [
                    {
                        "clients": kinds[one],
                        "topics": {topic: text for topic, _kind, text in sorted(one)},
                    }
                    for one in sets
                ]
            },
            related=tuple(Target("topic", topic) for topic in topics),
        )


@rule("queue-stuck", _("Queues with lag and a consumer make progress"))
def queue_stuck(evidence: Evidence) -> Results:
    """A queue with lag whose offset is the one of a sample before the threshold, while clients of
    the group are connected."""
    yield from undiagnosed(evidence)
    wait_ms, first = evidence.thresholds.stuck_s * 1000, 0
    for each in _diagnosed(evidence):
        lagging = offsets_with_lag(each)
        if not each.members or each.broadcasting or not lagging:
            continue
        before = evidence.samples.before(each.taken_ms - wait_ms)
        earlier = None if before is None else before.offsets.get(each.group)
        if before is None or earlier is None:
            first += 1
            continue
        stuck = sorted(key for key, offset in lagging.items() if earlier.get(key) == offset)
        if not stuck:
            continue
        names = [f"{topic} {broker}:{queue_id}" for topic, broker, queue_id in stuck]
        yield Finding(
            "queue-stuck",
            Severity.WARNING,
            Target("group", each.group),
            format_lazy(
                _("Queues with lag and without progress for {time}: {queues}"),
                time=Duration(each.taken_ms - before.at_ms),
                queues=listing(names),
            ),
            _(
                "Look at the threads of the client that owns the queue: a listener that blocks, or "
                "in an orderly group a message that fails again and again, stops its queue."
            ),
            {"queues": names[:QUEUES_SHOWN_MAX], "stuck_s": (each.taken_ms - before.at_ms) / 1000},
            related=tuple(Target("topic", name) for name in sorted({key[0] for key in stuck})),
        )
    if first:
        reason = _("Groups with lag: {count}. The check compares two samples, {time} apart.")
        yield NotChecked(format_lazy(reason, count=first, time=Duration(wait_ms)))


@rule("queues-skewed", _("Lag is spread over the queues"))
def queues_skewed(evidence: Evidence) -> Results:
    """A group whose lag is in one of several queues: one key gets most messages, or the consumer
    of the queue is slow."""
    for each in _diagnosed(evidence):
        queues = [queue for queue in each.queues if not queue.retry and queue.lag is not None]
        total = sum(queue.lag or 0 for queue in queues)
        if len(queues) < SKEW_QUEUES_MIN or total < SKEW_LAG_MIN:
            continue
        worst = max(queues, key=lambda queue: queue.lag or 0)
        if (worst.lag or 0) < SKEW_RATIO * total:
            continue
        yield Finding(
            "queues-skewed",
            Severity.ADVICE,
            Target("group", each.group),
            format_lazy(
                _("{lag} of {total} unconsumed messages are in one of {count} queues: {queue}"),
                lag=formats.number(worst.lag),
                total=formats.number(total),
                count=len(queues),
                queue=_queue_name(worst),
            ),
            _("Look at the client that owns the queue, and at the keys that select the queue."),
            {"queue": _queue_name(worst), "queue_lag": worst.lag, "lag": total},
            related=(Target("topic", worst.topic),),
        )


@rule("client-idle", _("Clients of a group have queues"))
def client_idle(evidence: Evidence) -> Results:
    """A connected client that owns no queue, while another client of the group does."""
    yield from undiagnosed(evidence)
    for each in _diagnosed(evidence):
        yield from _silent(each)
        if each.broadcasting or not any(member.queues for member in each.members):
            continue
        idle = [member.client_id for member in each.members if member.queues == frozenset()]
        if idle:
            yield Finding(
                "client-idle",
                Severity.ADVICE,
                Target("group", each.group),
                format_lazy(
                    _("{count} of {total} clients own no queue: {clients}"),
                    count=len(idle),
                    total=len(each.members) + each.not_asked,
                    clients=listing(idle),
                ),
                _(
                    "A group can use as many clients as its topics have queues. Add read queues, "
                    "or stop the clients."
                ),
                {"clients": idle},
            )


def offsets_with_lag(diagnosis: GroupDiagnosis) -> Mapping[QueueKey, int]:
    """Return the consumer offsets of the queues with lag, without retry queues: their messages
    wait for a delay."""
    return {
        (queue.topic, queue.broker, queue.queue_id): queue.consumer_offset
        for queue in diagnosis.queues
        if queue.lag and not queue.retry and queue.consumer_offset is not None
    }


def _diagnosed(evidence: Evidence) -> Iterator[GroupDiagnosis]:
    return (evidence.diagnoses[name] for name in sorted(evidence.diagnoses))


def undiagnosed(evidence: Evidence) -> Results:
    """Report groups whose clients have not been asked yet."""
    if evidence.not_diagnosed:
        reason = _(
            "Groups not asked yet: {count}. Clients are asked in turn, some groups per evaluation."
        )
        yield NotChecked(format_lazy(reason, count=evidence.not_diagnosed))


def _silent(diagnosis: GroupDiagnosis) -> Results:
    """Report members that did not answer, or were not asked, in groups with several members."""
    silent = sum(member.subscriptions is None for member in diagnosis.members)
    if len(diagnosis.members) > 1 and (silent or diagnosis.not_asked):
        reason = _("Group {group}: {count} of {total} clients did not report their state.")
        yield NotChecked(
            format_lazy(
                reason,
                group=diagnosis.group,
                count=silent + diagnosis.not_asked,
                total=len(diagnosis.members) + diagnosis.not_asked,
            )
        )


def _queue_name(queue: GroupQueue) -> str:
    return f"{queue.topic} {queue.broker}:{queue.queue_id}"

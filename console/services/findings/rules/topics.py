"""Rules about topics: without consumers, unread queues, unequal settings, one broker only."""

from collections.abc import Iterator

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.frame import formats
from console.gateway.topics.listing import TopicRow
from console.services.findings.finding import Finding, NotChecked, Severity, Target
from console.services.findings.rules.rule import Evidence, Results, gaps, listing, rule, stale_ms

#: Kinds of topics that applications do not create.
NOT_OWN = frozenset({"system", "retry", "dlq"})
#: Maximum age of the last message of a topic that is in use, ms.
IN_USE_MS = 24 * 3_600_000


@rule("topic-without-consumers", _("Topics in use have consumers"))
def topic_without_consumers(evidence: Evidence) -> Results:
    """A topic with messages of the last day that no group has ever consumed, or whose groups all
    have lag and no client."""
    part, snapshot = evidence.snapshot.topic_metrics, evidence.snapshot
    yield from gaps(part, snapshot.group_metrics)
    if part.value is None:
        return
    if part.value.left_out:
        reason = _("Topics without metrics: {count}. The brokers report one topic per request.")
        yield NotChecked(format_lazy(reason, count=part.value.left_out))
    groups = snapshot.group_metrics.value
    for row in own_topics(evidence):
        metrics = part.value.by_name.get(row.name)
        if metrics is None or not metrics.stored or metrics.last_write_ms is None:
            continue
        if evidence.now_ms - metrics.last_write_ms > IN_USE_MS:
            continue
        known = [] if groups is None else [groups.by_name.get(name) for name in metrics.groups]
        if metrics.groups:
            is_idle = (
                metrics.worst_lag
                and known
                and all(group is not None and group.clients == 0 for group in known)
            )
            if not is_idle:
                continue
            text = format_lazy(
                _("No group of the topic has a client: {groups}. Highest lag: {lag}"),
                groups=listing(metrics.groups),
                lag=formats.number(metrics.worst_lag),
            )
        else:
            text = format_lazy(
                _("No consumer group reads the topic. Stored messages: {stored}"),
                stored=formats.number(metrics.stored),
            )
        yield Finding(
            "topic-without-consumers",
            Severity.WARNING,
            Target("topic", row.name),
            text,
            _(
                "Start a consumer. Messages without a consumer are deleted when their retention "
                "ends."
            ),
            {
                "stored": metrics.stored,
                "groups": list(metrics.groups),
                "lag": metrics.worst_lag,
                "last_write_ms": metrics.last_write_ms,
            },
            as_of_ms=stale_ms(row.brokers, part),
            related=tuple(Target("group", name) for name in metrics.groups),
        )


@rule("unread-queues", _("Consumers read all write queues"))
def unread_queues(evidence: Evidence) -> Results:
    """A topic with more write queues than read queues on a broker."""
    topics = evidence.snapshot.topics
    yield from gaps(topics)
    for row in topics.value or ():
        if row.unread_queues and row.kind not in NOT_OWN:
            yield Finding(
                "unread-queues",
                Severity.WARNING,
                Target("topic", row.name),
                format_lazy(
                    _("No consumer reads {count} of {total} write queues."),
                    count=row.unread_queues,
                    total=row.write_queues,
                ),
                _("Raise the read queues of the topic to the number of write queues."),
                {
                    "unread_queues": row.unread_queues,
                    "write_queues": row.write_queues,
                    "read_queues": row.read_queues,
                },
                as_of_ms=stale_ms(row.brokers, topics),
            )


@rule("topic-drift", _("Settings of a topic are equal on all brokers"))
def topic_drift(evidence: Evidence) -> Results:
    topics = evidence.snapshot.topics
    yield from gaps(topics)
    for row in own_topics(evidence):
        if row.drift:
            yield Finding(
                "topic-drift",
                Severity.WARNING,
                Target("topic", row.name),
                format_lazy(
                    _("Queues, permission or order of the topic differ between {brokers}."),
                    brokers=listing(row.brokers),
                ),
                _("Save the settings of the topic for all brokers."),
                {"brokers": list(row.brokers)},
                as_of_ms=stale_ms(row.brokers, topics),
            )


@rule("one-broker", _("Topics have queues on several brokers"))
def one_broker(evidence: Evidence) -> Results:
    """A topic on one of several masters: sends fail while the broker is down."""
    topics, brokers = evidence.snapshot.topics, evidence.snapshot.brokers
    yield from gaps(topics, brokers)
    masters: dict[str, set[str]] = {}
    for broker in brokers.value or ():
        masters.setdefault(broker.cluster_name, set()).add(broker.ref.name)
    peers = {name: len(names) for names in masters.values() for name in names}
    for row in own_topics(evidence):
        if len(row.brokers) == 1 and peers.get(row.brokers[0], 1) > 1:
            yield Finding(
                "one-broker",
                Severity.ADVICE,
                Target("topic", row.name),
                format_lazy(
                    _("Only {broker} of {count} brokers has the topic."),
                    broker=row.brokers[0],
                    count=peers[row.brokers[0]],
                ),
                _("Create the topic on a second broker: producers then go on while one is down."),
                {"broker": row.brokers[0], "brokers": peers[row.brokers[0]]},
                as_of_ms=stale_ms(row.brokers, topics),
                related=(Target("broker", row.brokers[0]),),
            )


def own_topics(evidence: Evidence) -> Iterator[TopicRow]:
    """Yield the topics of applications."""
    return (row for row in evidence.snapshot.topics.value or () if row.kind not in NOT_OWN)

"""Messages that groups never consumed: untraced messages of the lake, judged by subscriptions.

The lake counts messages without a recorded attempt of a group. The subscriptions in the lake give
the reason; pages, resources and files share these states:

    passed     the committed offsets of the group are behind the message
    filtered   the tag filter of the group rejects the message
    pending    the group has neither: the message is never consumed
    unknown    the lake does not know the subscription or the offsets; an SQL92 filter, which may
               reject messages after the committed offsets
"""

from typing import Any, Final

from console.services.analytics.aggregates import Edge, Missed, Scope, SlowDelivery
from console.services.analytics.duck import LakeReader
from trace.lake import SLOW, UNTRACED
from trace.tables import UNTRACED_REASON

PENDING: Final = "pending"
UNKNOWN: Final = "unknown"

# {judged}, {stored} and {time} are SQL of this module; LakeReader replaces {{files}}.
_JUDGED: Final = """
    SELECT untraced.*, CASE
        WHEN known.topic IS NULL THEN 'unknown'
        WHEN {stored} < known.consumed_until_ms THEN 'passed'
        WHEN untraced.tags IS NOT NULL AND known.accepted_tags IS NOT NULL
             AND NOT list_contains(known.accepted_tags, untraced.tags) THEN 'filtered'
        WHEN known.consumed_until_ms IS NULL OR known.expression_type IS DISTINCT FROM 'TAG'
             OR untraced.tags IS NULL AND known.accepted_tags IS NOT NULL THEN 'unknown'
        ELSE 'pending' END AS state
    FROM {{files}} untraced LEFT JOIN subscriptions known
      ON known.topic = untraced.topic AND known.consumer_group = untraced.consumer_group
     AND {stored} >= known.since_ms AND ({stored} < known.until_ms OR known.until_ms IS NULL)
    WHERE {time} >= $begin AND {time} < $end
      AND ($topic IS NULL OR untraced.topic = $topic)
      AND ($consumer_group IS NULL OR untraced.consumer_group = $consumer_group)
      AND ($msg_type IS NULL OR untraced.msg_type = $msg_type)
"""
_COUNTS: Final = """
    SELECT topic, consumer_group, coalesce(sum(messages) FILTER (state = 'pending'), 0)::BIGINT,
           coalesce(sum(messages) FILTER (state = 'unknown'), 0)::BIGINT, max(last_ms)
    FROM ({judged})
    WHERE state IN ('pending', 'unknown') GROUP BY ALL
"""
_ROWS: Final = """
    SELECT at_ms, state, topic, producer_group, consumer_group, msg_type, msg_id, stored_ms,
           start_ms, latency_ms, end_to_end_ms, duration_ms, attempts, success
    FROM ({judged})
    WHERE reason = $reason AND state IN ('pending', 'unknown')
    ORDER BY at_ms DESC, msg_id LIMIT $limit
"""


def missed(reader: LakeReader, scope: Scope) -> dict[tuple[str, str], Missed]:
    """The counts by topic and consumer group, without groups that missed no message.

    A minute counts as pending until the group has passed the whole minute.
    """
    sql = _COUNTS.format(judged=_JUDGED.format(stored="untraced.last_ms", time="minute_ms"))
    rows = reader.rows(sql, UNTRACED, scope.range, scope.parameters)
    return {(topic, group): Missed(*counts) for topic, group, *counts in rows}


def total(counts: dict[tuple[str, str], Missed]) -> Missed:
    """The sum of all topics and groups."""
    return Missed(
        sum(each.pending for each in counts.values()),
        sum(each.unknown for each in counts.values()),
        max((each.last_ms for each in counts.values()), default=0),
    )


def never_consumed(reader: LakeReader, scope: Scope, limit: int) -> list[SlowDelivery]:
    """The pending and unknown messages, newest first, among the untraced messages that the job
    keeps per hour. `reason` is their state."""
    parameters = {**scope.parameters, "reason": UNTRACED_REASON, "limit": limit}
    sql = _ROWS.format(judged=_JUDGED.format(stored="untraced.stored_ms", time="at_ms"))
    rows = reader.rows(sql, SLOW, scope.range, parameters)
    return [SlowDelivery(*row) for row in rows]


def with_missed(edges: list[Edge], counts: dict[tuple[str, str], Missed]) -> list[Edge]:
    """Add the counts to the edges; a group without any consumed message gets a new edge."""
    result = []
    left = dict(counts)
    for edge in edges:
        found = left.pop((str(edge.topic), str(edge.consumer_group)), None)
        result.append(edge if found is None else edge.with_missed(found))
    more: list[Any] = [
        Edge(None, topic, group, 0, 0, 0, 0, 0, found.last_ms).with_missed(found)
        for (topic, group), found in left.items()
    ]
    return result + more

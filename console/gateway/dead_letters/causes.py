"""The cause of a group's newest dead letter.

RocketMQ stores no cause with a dead letter. The trace records of its last delivery hold the result
of the listener; without trace records only the number of deliveries is known.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from console.gateway.dead_letters.search import search
from console.gateway.engine.answers import Answer, Partial, merge_failures
from console.gateway.engine.errors import GatewayError, NotFound
from console.gateway.engine.questions import question
from console.gateway.engine.session import ClusterSession
from console.gateway.traces.records import records_of
from trace.codec import ConsumeReturnType, SubAfter, SubBefore, TraceRecord

#: Maximum number of groups of a list whose cause is requested.
GROUPS_ASKED_MAX = 20
FRESH_MS = 10_000


class Cause(StrEnum):
    """The listener's result of the last delivery."""

    EXCEPTION = "exception"
    TIME_OUT = "time_out"
    RETURN_NULL = "return_null"
    #: The listener returned a failure.
    FAILED = "failed"
    #: No trace record of the delivery.
    NOT_TRACED = "not_traced"


@dataclass(frozen=True, slots=True)
class DeadLetterCause:
    """The newest dead letter of a group, with its cause."""

    group: str
    cause: Cause
    deliveries: int
    msg_id: str
    offset_msg_id: str
    died_ms: int


@question(fresh_for_ms=FRESH_MS, deadline_ms=10_000)
async def newest_cause(session: ClusterSession, group: str) -> Partial[DeadLetterCause | None]:
    """The cause of the group's newest dead letter; None without dead letters."""
    try:
        answer = await session.ask(search, group, limit=1)
    except NotFound:
        return Partial(None)
    if not answer.value.rows:
        return Partial(None, answer.failures)
    message = answer.value.rows[0].message
    records, failures = await records_of(session, message.msg_id)
    found = DeadLetterCause(
        group,
        last_cause(records, group),
        max(1, message.reconsume_times),
        message.msg_id,
        message.offset_msg_id,
        message.store_timestamp,
    )
    return Partial(found, merge_failures(answer.failures, failures))


@question(fresh_for_ms=2_000, deadline_ms=12_000)
async def newest_causes(
    session: ClusterSession, groups: tuple[str, ...]
) -> Partial[Mapping[str, DeadLetterCause]]:
    """The causes for the first GROUPS_ASKED_MAX groups, without groups of failed questions."""
    answers = await asyncio.gather(
        *(session.ask(newest_cause, group) for group in groups[:GROUPS_ASKED_MAX]),
        return_exceptions=True,
    )
    found: dict[str, DeadLetterCause] = {}
    for answer in answers:
        if isinstance(answer, Answer):
            if answer.value is not None:
                found[answer.value.group] = answer.value
        elif not isinstance(answer, GatewayError):
            raise answer
    return Partial(found)


def last_cause(records: Iterable[TraceRecord], group: str) -> Cause:
    """Return the listener's result of the last failed delivery to the group."""
    about = list(records)
    # Before 4.9.3 a SubAfter record has no group; the SubBefore record has one.
    requests = {r.request_id for r in about if isinstance(r, SubBefore) and r.group == group}
    ends = [
        each
        for each in about
        if isinstance(each, SubAfter)
        and not each.success
        and (each.group == group or each.request_id in requests)
    ]
    if not ends:
        return Cause.NOT_TRACED
    last = max(ends, key=lambda each: each.timestamp_ms or 0)
    names = {
        ConsumeReturnType.EXCEPTION: Cause.EXCEPTION,
        ConsumeReturnType.TIME_OUT: Cause.TIME_OUT,
        ConsumeReturnType.RETURN_NULL: Cause.RETURN_NULL,
    }
    return next((cause for code, cause in names.items() if code == last.context_code), Cause.FAILED)

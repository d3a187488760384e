"""Why a group gives up on messages, as far as its newest dead letter tells.

RocketMQ stores no reason with a dead letter. The trace records of its last delivery say how the
listener came back; without them only the number of deliveries is known.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from console.gateway.dead_letters.search import search
from console.gateway.engine.answers import Answer, Partial, merge_failures
from console.gateway.engine.errors import GatewayError, NotThere
from console.gateway.engine.questions import question
from console.gateway.engine.session import ClusterSession
from console.gateway.traces.records import records_of
from trace.codec import ConsumeReturnType, SubAfter, SubBefore, TraceRecord

#: Reasons are asked for so many groups of a list; the others show theirs on their own pages.
GROUPS_ASKED_MAX = 20
FRESH_MS = 10_000


class Cause(StrEnum):
    """How the listener came back from the last delivery."""

    EXCEPTION = "exception"
    TIME_OUT = "time_out"
    RETURN_NULL = "return_null"
    #: It said itself that it had failed.
    FAILED = "failed"
    #: No trace record tells.
    NOT_TRACED = "not_traced"


@dataclass(frozen=True, slots=True)
class DeadLetterCause:
    """What is known of the newest dead letter of a group."""

    group: str
    cause: Cause
    deliveries: int
    msg_id: str
    offset_msg_id: str
    died_ms: int


@question(fresh_for_ms=FRESH_MS, deadline_ms=10_000)
async def newest_cause(session: ClusterSession, group: str) -> Partial[DeadLetterCause | None]:
    """Why the newest letter of the group died; None when it has none."""
    try:
        answer = await session.ask(search, group, limit=1)
    except NotThere:
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
    """The same for the first groups of a list; one that cannot be told is left out."""
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
    """How the last failed delivery to the group came back."""
    about = list(records)
    # Before 4.9.3 the record of an end does not name the group; that of the start does.
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

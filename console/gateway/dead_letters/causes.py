"""The cause of a group's newest dead letter.

RocketMQ stores no cause with a dead letter. The trace records of its last delivery hold the result
of the listener; without trace records only the number of deliveries is known.

Callers name the store time of the newest dead letter that they have read, so that a cause is never
older than the time beside it. The cause of a letter does not change: a group without new dead
letters needs no request.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from time import monotonic, time
from weakref import WeakKeyDictionary

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
#: Maximum number of remembered causes of a cluster.
CAUSES_MAX = 8_192
#: Age of a dead letter from which an unknown cause is remembered: clients send trace records some
#: seconds after a delivery.
TRACES_LATE_MS = 60_000
#: Time for which an unknown cause is remembered, seconds.
NOT_TRACED_S = 60.0
#: Time for which a cause is remembered, seconds.
TRACED_S = 3_600.0


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


#: A group, and the store time of the newest dead letter that the caller has read; None: unknown.
Read = tuple[str, int | None]


class _Causes:
    """Causes of dead letters, by group and store time of the newest letter; bounded."""

    def __init__(self) -> None:
        self._causes: OrderedDict[Read, tuple[DeadLetterCause, float]] = OrderedDict()

    def find(self, read: Read) -> DeadLetterCause | None:
        cause, until_s = self._causes.get(read, (None, 0.0))
        return cause if monotonic() < until_s else None

    def keep(self, cause: DeadLetterCause) -> None:
        kept_s = TRACED_S
        if cause.cause is Cause.NOT_TRACED:
            if time() * 1_000 - cause.died_ms < TRACES_LATE_MS:
                return
            kept_s = NOT_TRACED_S
        read = (cause.group, cause.died_ms)
        self._causes[read] = cause, monotonic() + kept_s
        self._causes.move_to_end(read)
        while len(self._causes) > CAUSES_MAX:
            self._causes.popitem(last=False)


_causes: WeakKeyDictionary[ClusterSession, _Causes] = WeakKeyDictionary()


def newest_ms(read_ms: int | None, cause: DeadLetterCause | None) -> int | None:
    """Return the time beside a cause: a dead letter may come between the reads of both."""
    times_ms = (read_ms, cause.died_ms if cause else None)
    return max((each for each in times_ms if each), default=None)


@question(fresh_for_ms=FRESH_MS, deadline_ms=10_000)
async def newest_cause(
    session: ClusterSession, group: str, read_ms: int | None
) -> Partial[DeadLetterCause | None]:
    """The cause of the group's newest dead letter, stored at `read_ms` or later; None without dead
    letters.
    """
    kept = _causes.setdefault(session, _Causes())
    if (remembered := kept.find((group, read_ms))) is not None:
        return Partial(remembered)
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
    failures = merge_failures(answer.failures, failures)
    if not failures:
        kept.keep(found)
    return Partial(found, failures)


@question(fresh_for_ms=2_000, deadline_ms=12_000)
async def newest_causes(
    session: ClusterSession, groups: tuple[Read, ...]
) -> Partial[Mapping[str, DeadLetterCause]]:
    """The causes for the first GROUPS_ASKED_MAX groups, without groups of failed questions."""
    answers = await asyncio.gather(
        *(session.ask(newest_cause, *read) for read in groups[:GROUPS_ASKED_MAX]),
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

# cython: language_level=3, annotation_typing=False
"""The attempts of a group to consume one message: pairs of records, causal order, outcome, times.

Pure. `trace.timeline` applies the rules to the records of a page, `trace.facts` to the events of a
lake. The module is compiled where there is a compiler, and runs as plain Python elsewhere.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

import msgspec

#: Default maximum of retries of a group before the dead letter.
RETRY_TIMES_MAX_DEFAULT: Final = 16
#: Maximum cost of a send or listener, ms; a larger value comes from a wrong clock and is capped.
COST_MAX_MS: Final = 24 * 3600 * 1000


class AttemptState(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    #: No recorded end: the listener still runs, its consumer died, or the record was lost.
    UNFINISHED = "unfinished"


SUCCEEDED, FAILED, UNFINISHED = AttemptState


class Attempt(msgspec.Struct, frozen=True, gc=False):
    """One delivery to the listener of one group. Times are corrected for clock skew."""

    group: str
    request_id: str
    #: None when the SubBefore record was lost.
    retry_times: int | None
    state: AttemptState
    start_ms: int | None
    duration_ms: int | None
    context_code: int | None = None
    skew_ms: int = 0

    @property
    def end_ms(self) -> int | None:
        if self.start_ms is None or self.duration_ms is None:
            return None
        return self.start_ms + self.duration_ms


class Begin(msgspec.Struct, frozen=True, gc=False):
    """The values of a SubBefore record."""

    at_ms: int
    group: str
    retry_times: int


class End(msgspec.Struct, frozen=True, gc=False):
    """The values of a SubAfter record."""

    #: None in records of older clients.
    at_ms: int | None
    group: str
    cost_ms: int
    success: bool
    context_code: int | None = None
    #: Store time of the trace message, where it stands for a missing `at_ms`.
    stored_ms: int | None = None


def capped_cost_ms(cost_ms: int | None) -> int:
    """A recorded duration within its limits; unknown durations count as 0."""
    return min(max(cost_ms or 0, 0), COST_MAX_MS)


def paired(request_id: str, begin: Begin | None, end: End | None) -> Attempt:
    """The attempt of a listener call, of which one record may be lost."""
    if end is None:
        assert begin is not None
        return Attempt(
            begin.group, request_id, begin.retry_times, UNFINISHED, begin.at_ms, None, None
        )
    state = SUCCEEDED if end.success else FAILED
    duration_ms = capped_cost_ms(end.cost_ms)
    if begin is None:
        end_ms = end.stored_ms if end.at_ms is None else end.at_ms
        start_ms = None if end_ms is None else end_ms - duration_ms
        return Attempt(end.group, request_id, None, state, start_ms, duration_ms, end.context_code)
    if end.at_ms is not None:
        # Java divides the cost by the number of messages; the difference of the two timestamps is
        # exact.
        duration_ms = max(end.at_ms - begin.at_ms, duration_ms)
    group = begin.group or end.group
    return Attempt(
        group, request_id, begin.retry_times, state, begin.at_ms, duration_ms, end.context_code
    )


def estimated_store_ms(sent_ms: int, cost_ms: int) -> int:
    """RocketMQ's estimate without a query to the broker: the middle of the send."""
    return sent_ms + capped_cost_ms(cost_ms) // 2


def in_order(attempts: Iterable[Attempt]) -> list[Attempt]:
    """Sort by retry count, then time; attempts without a retry count are inserted by time."""
    ordered = [attempt for attempt in attempts if attempt.retry_times is not None]
    if len(ordered) > 1:
        ordered.sort(key=_order)
    for lost in sorted((attempt for attempt in attempts if attempt.retry_times is None), key=_time):
        place = len(ordered)
        if lost.start_ms is not None:
            for other_place, other in enumerate(ordered):
                if (other.start_ms or 0) > lost.start_ms:
                    place = other_place
                    break
        ordered.insert(place, lost)
    return ordered


def settled(ordered: Iterable[Attempt], sent_ms: int | None) -> list[Attempt]:
    """Attempts in order, with attempts that start before their cause moved to their cause."""
    corrected = []
    cause_ms = level_end_ms = sent_ms or 0
    level: int | None = None
    for attempt in ordered:
        if attempt.retry_times != level:
            cause_ms, level = level_end_ms, attempt.retry_times
        if attempt.start_ms is not None:
            start_ms = max(attempt.start_ms, cause_ms)
            level_end_ms = max(level_end_ms, start_ms + (attempt.duration_ms or 0))
            if start_ms != attempt.start_ms:
                corrected.append(moved(attempt, start_ms))
                continue
        corrected.append(attempt)
    return corrected


def moved(attempt: Attempt, start_ms: int) -> Attempt:
    """The attempt with a corrected start."""
    assert attempt.start_ms is not None
    return msgspec.structs.replace(attempt, start_ms=start_ms, skew_ms=start_ms - attempt.start_ms)


def dead_letter_index(ordered: Sequence[Attempt], retry_times_max: int) -> int | None:
    """The last failure of the attempts with the highest retry count, at the limit of retries."""
    level = ordered[-1].retry_times
    if level is None or level < retry_times_max:
        return None
    for index in range(len(ordered) - 1, -1, -1):
        if ordered[index].retry_times == level and ordered[index].state is FAILED:
            return index
    return None


def first_success_index(corrected: Sequence[Attempt]) -> int | None:
    """The attempt with the earliest recorded success."""
    first, first_end_ms = None, None
    for index, attempt in enumerate(corrected):
        end_ms = attempt.end_ms if attempt.state is SUCCEEDED else None
        if end_ms is not None and (first_end_ms is None or end_ms < first_end_ms):
            first, first_end_ms = index, end_ms
    return first


def elapsed_ms(begin_ms: int | None, end_ms: int | None) -> int | None:
    """The time between; 0 where clocks disagree, None where a time is unknown."""
    return None if begin_ms is None or end_ms is None else max(end_ms - begin_ms, 0)


def _order(attempt: Attempt) -> tuple[int, int, str]:
    return attempt.retry_times or 0, attempt.start_ms or 0, attempt.request_id


def _time(attempt: Attempt) -> tuple[bool, int, str]:
    return attempt.start_ms is None, attempt.start_ms or 0, attempt.request_id

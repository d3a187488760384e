# cython: language_level=3, annotation_typing=False
"""The facts of messages: sends, and attempts to consume, with their causes, order and times.

The rules about attempts are in `trace.attempts`. The derivation needs all events of a message at
once. The module is compiled where there is a compiler, and runs as plain Python elsewhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from trace.attempts import (
    RETRY_TIMES_MAX_DEFAULT,
    SUCCEEDED,
    UNFINISHED,
    Attempt,
    Begin,
    End,
    capped_cost_ms,
    dead_letter_index,
    elapsed_ms,
    estimated_store_ms,
    first_success_index,
    in_order,
    paired,
    settled,
)
from trace.codec import MessageType
from trace.tables import FACTS

if TYPE_CHECKING:
    from pyarrow import Table

HOUR_MS: Final = 3_600_000
#: Maximum age, in hours, of a send or first attempt that is joined with later attempts.
LOOKBACK_HOURS: Final = 24
SEND, ATTEMPT, CONSUMER = "send", "attempt", "consumer"
#: Rows of events that are Python objects at the same time.
ROWS_AT_ONCE: Final = 50_000
#: Columns of the events that `facts_of` reads. A batch has one row for each of its messages, with
#: `batch_index` from 0.
EVENT_COLUMNS: Final = (
    *("kind", "event_ms", "stored_ms", "timestamp_ms", "group_name", "topic", "request_id"),
    *("msg_type", "cost_ms", "body_bytes", "retry_times", "success", "transaction_state"),
    *("msg_id", "batch_index", "batch_size"),
)


def facts_of(
    events: "Table", hours: Sequence[int], retry_times_max: Mapping[str, int]
) -> "Iterator[dict[str, list[Any]]]":
    """The rows of `trace.tables.FACTS` within `hours`, as columns, in several parts.

    `events` has EVENT_COLUMNS and all events of its messages, in any order. Rows of consumers
    cover all hours of the events.
    """
    import numpy

    events = events.combine_chunks()
    codes = events.column("msg_id").combine_chunks().dictionary_encode().indices.to_numpy()
    order = numpy.argsort(codes, kind="stable")
    codes = codes[order]
    begins = [*numpy.flatnonzero(numpy.diff(codes, prepend=-1)).tolist(), len(codes)]
    facts = _Facts(hours, retry_times_max)
    part: list[int] = []
    for message, begin in enumerate(begins):
        part.append(begin)
        if begin - part[0] >= ROWS_AT_ONCE or message == len(begins) - 1:
            rows = events.take(order[part[0] : begin])
            columns = [rows.column(name).to_pylist() for name in EVENT_COLUMNS]
            for first, after in pairwise(part):
                facts.add(columns, first - part[0], after - part[0])
            yield facts.rows()
            part = [begin]
    yield facts.consumers()


class _Facts:
    """Collects the facts of one message after another."""

    def __init__(self, hours: Sequence[int], retry_times_max: Mapping[str, int]) -> None:
        self._hours = frozenset(hours)
        self._limits = retry_times_max
        self._rows: list[tuple[Any, ...]] = []
        #: Topic, group, hour: start of the first attempt.
        self._consumers: dict[tuple[str, str, int], int] = {}

    def rows(self) -> dict[str, list[Any]]:
        """The facts since the last call."""
        rows, self._rows = self._rows, []
        return dict(zip(FACTS.names, map(list, zip(*rows, strict=True)), strict=False))

    def consumers(self) -> dict[str, list[Any]]:
        """The rows of consumers."""
        for (topic, group, _hour), start_ms in self._consumers.items():
            self._rows.append(
                (CONSUMER, start_ms, topic, None, group, *(None,) * (len(FACTS.names) - 5))
            )
        return self.rows()

    def add(self, columns: Sequence[Sequence[Any]], first: int, after: int) -> None:
        """Add the facts of the message whose events are the rows from `first` to `after`."""
        sends: list[tuple[Any, ...]] = []
        begins: dict[str, Begin] = {}
        ends: dict[str, tuple[int, End]] = {}
        is_cancelled = is_committed = False
        (kinds, event_mss, stored_mss, timestamps, groups, topics, requests) = columns[:7]
        (types, costs, sizes, retries, successes, states, ids, members, batches) = columns[7:]
        for row in range(first, after):
            kind, at_ms = kinds[row], event_mss[row]
            if kind == "SubBefore":
                request = requests[row]
                known = begins.get(request)
                if known is None or at_ms < known.at_ms:
                    begins[request] = Begin(at_ms, groups[row], retries[row])
            elif kind == "SubAfter":
                request, stored_ms = requests[row], stored_mss[row]
                # Of two SubAfter records of one request the first counts.
                if request not in ends or stored_ms < ends[request][0]:
                    end_ms = None if timestamps[row] is None else at_ms
                    end = End(end_ms, groups[row], costs[row], successes[row], None, at_ms)
                    ends[request] = stored_ms, end
            elif kind == "Pub":
                send = (
                    *(at_ms, topics[row] or None, groups[row] or None, types[row], members[row]),
                    *(batches[row], max(sizes[row] or 0, 0), capped_cost_ms(costs[row])),
                    successes[row],
                )
                # The topic may hold a trace message twice; two attempts of one send differ in time.
                if send not in sends:
                    sends.append(send)
            elif kind == "Recall":
                is_cancelled = is_cancelled or successes[row]
            elif kind == "EndTransaction":
                is_committed = is_committed or states[row] == "COMMIT_MESSAGE"
        attempts: dict[str | None, list[Attempt]] = {}
        for request in {**begins, **ends}:
            end_of_request = ends.get(request)
            attempt = paired(
                request, begins.get(request), None if end_of_request is None else end_of_request[1]
            )
            attempts.setdefault(attempt.group or None, []).append(attempt)
        if len(sends) > 1:
            sends.sort(key=_send_order)
        if sends and sends[0][3] == MessageType.TRANSACTION_HALF and not is_committed:
            is_cancelled = True
        is_awaited = not is_cancelled and bool(sends) and sends[0][3] != MessageType.DELAY
        awaited = [group for group in attempts if group] if is_awaited else None
        stored_ms = self._add_sends(ids[first], sends, awaited)
        for group, recorded in attempts.items():
            self._add_attempts(ids[first], group, recorded, sends[0] if sends else None, stored_ms)

    def _add_sends(
        self, msg_id: str, sends: list[tuple[Any, ...]], groups: list[str] | None
    ) -> int | None:
        """Add the sends; returns the estimated store time of the message.

        The first success has the groups that attempted to consume the message, unless the message
        is not meant to be consumed.
        """
        stored_ms = None
        for at_ms, topic, producer, kind, member, batch, size, cost_ms, success in sends:
            first_stored_ms = None
            if success and stored_ms is None:
                stored_ms = first_stored_ms = estimated_store_ms(at_ms, cost_ms)
            if at_ms // HOUR_MS in self._hours or (
                first_stored_ms is not None and first_stored_ms // HOUR_MS in self._hours
            ):
                self._rows.append(
                    (
                        *(SEND, None, topic, producer, None, kind, msg_id, at_ms, first_stored_ms),
                        *(0 if member else batch, size, cost_ms, success),
                        None if first_stored_ms is None or groups is None else groups,
                        *(None,) * 9,
                    )
                )
        return stored_ms

    def _add_attempts(
        self,
        msg_id: str,
        group: str | None,
        recorded: list[Attempt],
        origin: tuple[Any, ...] | None,
        stored_ms: int | None,
    ) -> None:
        ordered = in_order(recorded) if len(recorded) > 1 else recorded
        sent_ms = None if origin is None else origin[0]
        corrected = settled(ordered, sent_ms)
        first_success = first_success_index(corrected)
        limit = self._limits.get(group or "", RETRY_TIMES_MAX_DEFAULT)
        dead_index = dead_letter_index(ordered, limit)
        end_to_end_ms = None
        if first_success is not None:
            end_to_end_ms = elapsed_ms(sent_ms, corrected[first_success].end_ms)
            success_ms = ordered[first_success].start_ms
            if not _is_near(sent_ms, success_ms):
                end_to_end_ms = None
        for index, attempt in enumerate(ordered):
            start_ms = attempt.start_ms
            hour = start_ms // HOUR_MS  # type: ignore[operator]
            cause, cause_stored_ms = origin, stored_ms
            # Older sends are unknown when only the later hour is read: use no older send.
            if not _is_near(sent_ms, start_ms):
                cause = cause_stored_ms = None
            topic, producer, kind = (None, None, None) if cause is None else cause[1:4]
            if topic is not None and group is not None:
                key = topic, group, hour
                if start_ms < self._consumers.get(key, start_ms + 1):  # type: ignore[operator]
                    self._consumers[key] = start_ms  # type: ignore[assignment]
            if hour not in self._hours:
                continue
            is_first = index == 0
            state = attempt.state
            self._rows.append(
                (
                    *(ATTEMPT, start_ms, topic, producer, group, kind, msg_id),
                    *(None if cause is None else sent_ms, cause_stored_ms, None, None, None),
                    None if state is UNFINISHED else state is SUCCEEDED,
                    *(None, attempt.retry_times, attempt.duration_ms, index, len(ordered)),
                    elapsed_ms(cause_stored_ms, corrected[0].start_ms) if is_first else None,
                    end_to_end_ms if index == first_success else None,
                    end_to_end_ms if is_first else None,
                    index == first_success,
                    index == dead_index,
                )
            )


def _is_near(sent_ms: int | None, start_ms: int | None) -> bool:
    return (
        sent_ms is not None
        and start_ms is not None
        and sent_ms >= start_ms // HOUR_MS * HOUR_MS - LOOKBACK_HOURS * HOUR_MS
    )


def _send_order(send: tuple[Any, ...]) -> tuple[int, str, str, int]:
    at_ms, topic, producer, kind = send[:4]
    return at_ms, topic or "", producer or "", -1 if kind is None else kind

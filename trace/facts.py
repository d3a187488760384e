# cython: language_level=3, boundscheck=False, wraparound=False, annotation_typing=False
"""The facts of messages: sends, and attempts to consume, with their causes, order and times.

The rules about attempts are in `trace.attempts`. The derivation needs all events of a message at
once. Events and facts are flat arrays of numbers, without an object per field; `trace.fact_columns`
makes them of Arrow tables. `trace/facts.pxd` has the C types: the module is compiled where there is
a compiler, and runs as plain Python elsewhere.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

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
from trace.scan import KINDS, Array
from trace.tables import LOOKBACK_HOURS

#: Stands for an unknown number in the flat arrays.
UNKNOWN: Final = -(2**63)
#: Columns of the flat arrays. A text is its number; `awaited_groups` is the number of groups.
SEND_COLUMNS: Final = (
    *("topic", "producer_group", "msg_type", "msg_id", "sent_ms", "stored_ms", "messages"),
    *("bytes", "cost_ms", "success", "awaited_groups", "tags"),
)
ATTEMPT_COLUMNS: Final = (
    *("start_ms", "topic", "producer_group", "consumer_group", "msg_type", "msg_id", "sent_ms"),
    *("stored_ms", "success", "retry_times", "duration_ms", "attempt_index", "attempts"),
    *("latency_ms", "end_to_end_ms", "group_end_to_end_ms", "is_first_success", "is_dead_letter"),
)
_HOUR_MS: Final = 3_600_000
_LOOKBACK_MS: Final = LOOKBACK_HOURS * _HOUR_MS
_NULL: Final = UNKNOWN
_PUB, _SUB_BEFORE, _, _END_TRANSACTION, _RECALL = range(len(KINDS))
_HALF, _DELAY = int(MessageType.TRANSACTION_HALF), int(MessageType.DELAY)


class Events:
    """Events as flat arrays, in the order of their messages and requests.

    A request of 0 means an event that belongs to no listener call.
    """

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.message = arrays["msg_id"]
        self.request = arrays["request_id"]
        self.kind = arrays["kind"]
        self.is_call = arrays["is_call"]
        self.event_ms = arrays["event_ms"]
        self.stored_ms = arrays["stored_ms"]
        self.timestamp_ms = arrays["timestamp_ms"]
        self.group = arrays["group_name"]
        self.topic = arrays["topic"]
        self.msg_type = arrays["msg_type"]
        self.cost_ms = arrays["cost_ms"]
        self.body_bytes = arrays["body_bytes"]
        self.retry_times = arrays["retry_times"]
        self.success = arrays["success"]
        self.is_commit = arrays["is_commit"]
        self.batch_index = arrays["batch_index"]
        self.batch_size = arrays["batch_size"]
        self.tags = arrays["tags"]


class MessageFacts:
    """Derives the facts of one message after another, and writes them to flat arrays."""

    def __init__(
        self,
        events: Events,
        texts: Mapping[str, list[str]],
        rows: tuple[Array, Array, Array],
        options: tuple[Sequence[int], Mapping[str, int]],
    ) -> None:
        self._events = events
        self._requests, self._topics = texts["request_id"], texts["topic"]
        self._groups = texts["group_name"]
        self._group_codes = {
            name: code for code, name in enumerate(self._groups) if name or not code
        }
        self._send_rows, self._attempt_rows, self._awaited = rows
        self._hours, self._limits = frozenset(options[0]), options[1]
        #: Numbers of rows.
        self.sends = self.attempts = self._groups_awaited = 0

    def derive(self) -> None:
        """Add the facts of all messages."""
        message, first, end = self._events.message, 0, len(self._events.message)
        while first < end:
            after = first + 1
            while after < end and message[after] == message[first]:
                after += 1
            self._add(first, after)
            first = after

    def _add(self, first: int, after: int) -> None:
        """Add the facts of the message whose events are the rows from `first` to `after`."""
        events = self._events
        sends: list[tuple[Any, ...]] = []
        is_cancelled = is_committed = False
        row = first
        while row < after and events.is_call[row] == 0:
            kind = events.kind[row]
            if kind == _PUB:
                send = (
                    *(events.event_ms[row], events.topic[row], events.group[row]),
                    *(events.msg_type[row], events.batch_index[row], events.batch_size[row]),
                    *(events.body_bytes[row], events.cost_ms[row], events.success[row]),
                    events.tags[row] if events.batch_size[row] == 1 else _NULL,
                )
                # The topic may hold a trace message twice; two attempts of one send differ in time.
                if send not in sends:
                    sends.append(send)
            elif kind == _RECALL:
                is_cancelled = is_cancelled or events.success[row] == 1
            elif kind == _END_TRANSACTION:
                is_committed = is_committed or events.is_commit[row] == 1
            row += 1
        attempts = self._attempts_by_group(row, after)
        if len(sends) > 1:
            sends.sort(key=self._send_order)
        if sends and sends[0][3] == _HALF and not is_committed:
            is_cancelled = True
        is_awaited = not is_cancelled and bool(sends) and sends[0][3] != _DELAY
        stored_ms = self._add_sends(first, sends, attempts if is_awaited else None)
        for group, recorded in attempts.items():
            self._add_attempts(first, group, recorded, sends[0] if sends else None, stored_ms)

    def _attempts_by_group(self, row: int, after: int) -> dict[str, list[Attempt]]:
        """The attempts of the listener calls in the rows from `row` to `after`."""
        events = self._events
        attempts: dict[str, list[Attempt]] = {}
        while row < after:
            begin = end = -1
            request = events.request[row]
            while row < after and events.request[row] == request:
                if events.kind[row] == _SUB_BEFORE:
                    if begin < 0 or events.event_ms[row] < events.event_ms[begin]:
                        begin = row
                # Of two SubAfter records of one request the first counts.
                elif end < 0 or events.stored_ms[row] < events.stored_ms[end]:
                    end = row
                row += 1
            attempt = paired(
                self._requests[request],
                None if begin < 0 else self._begin(begin),
                None if end < 0 else self._end(end),
            )
            recorded = attempts.get(attempt.group)
            if recorded is None:
                attempts[attempt.group] = [attempt]
            else:
                recorded.append(attempt)
        return attempts

    def _begin(self, row: int) -> Begin:
        events = self._events
        return Begin(
            events.event_ms[row],
            self._groups[events.group[row]],
            _known(events.retry_times[row]),  # type: ignore[arg-type]
        )

    def _end(self, row: int) -> End:
        events = self._events
        at_ms = events.event_ms[row]
        return End(
            None if events.timestamp_ms[row] == _NULL else at_ms,
            self._groups[events.group[row]],
            events.cost_ms[row],
            events.success[row] == 1,
            None,
            at_ms,
        )

    def _add_sends(
        self, first: int, sends: list[tuple[Any, ...]], attempts: dict[str, list[Attempt]] | None
    ) -> int:
        """Add the sends; returns the estimated store time of the message.

        The first success has the groups of the attempts, unless the message is not meant to be
        consumed.
        """
        rows, message, stored_ms = self._send_rows, self._events.message[first], _NULL
        for at_ms, topic, producer, kind, member, batch, size, cost_ms, success, tags in sends:
            first_stored_ms = _NULL
            if success == 1 and stored_ms == _NULL:
                stored_ms = first_stored_ms = estimated_store_ms(at_ms, cost_ms)
            if at_ms // _HOUR_MS not in self._hours and (
                first_stored_ms == _NULL or first_stored_ms // _HOUR_MS not in self._hours
            ):
                continue
            awaited = _NULL
            if first_stored_ms != _NULL and attempts is not None:
                awaited = 0
                for group in attempts:
                    if group:
                        self._awaited[self._groups_awaited] = self._group_codes[group]
                        self._groups_awaited += 1
                        awaited += 1
            to = 12 * self.sends
            self.sends += 1
            rows[to], rows[to + 1], rows[to + 2], rows[to + 3] = topic, producer, kind, message
            rows[to + 4], rows[to + 5], rows[to + 6] = (
                at_ms,
                first_stored_ms,
                0 if member else batch,
            )
            rows[to + 7], rows[to + 8] = max(size, 0), capped_cost_ms(cost_ms)
            rows[to + 9], rows[to + 10] = success, awaited
            rows[to + 11] = _NULL if awaited == _NULL else tags
        return stored_ms

    def _add_attempts(
        self,
        first: int,
        group: str,
        recorded: list[Attempt],
        origin: tuple[Any, ...] | None,
        stored_ms: int,
    ) -> None:
        rows, message, code = (
            self._attempt_rows,
            self._events.message[first],
            self._group_codes[group],
        )
        ordered = in_order(recorded) if len(recorded) > 1 else recorded
        sent_ms = _NULL if origin is None else origin[0]
        corrected = settled(ordered, _known(sent_ms))
        first_success = first_success_index(corrected)
        dead_index = dead_letter_index(ordered, self._limits.get(group, RETRY_TIMES_MAX_DEFAULT))
        end_to_end_ms = _NULL
        if first_success is not None and _is_near(
            sent_ms, _stored(ordered[first_success].start_ms)
        ):
            end_to_end_ms = _stored(elapsed_ms(sent_ms, corrected[first_success].end_ms))
        for index, attempt in enumerate(ordered):
            start_ms = _stored(attempt.start_ms)
            if start_ms // _HOUR_MS not in self._hours:
                continue
            # Older sends are unknown when only the later hour is read: use no older send.
            cause_sent_ms = cause_stored_ms = kind = _NULL
            topic = producer = 0
            if origin is not None and _is_near(sent_ms, start_ms):
                cause_sent_ms, cause_stored_ms = sent_ms, stored_ms
                topic, producer, kind = origin[1], origin[2], origin[3]
            latency_ms = _NULL
            if index == 0 and cause_stored_ms != _NULL:
                latency_ms = _stored(elapsed_ms(cause_stored_ms, corrected[0].start_ms))
            to = 18 * self.attempts
            self.attempts += 1
            rows[to], rows[to + 1], rows[to + 2], rows[to + 3] = start_ms, topic, producer, code
            rows[to + 4], rows[to + 5], rows[to + 6] = kind, message, cause_sent_ms
            rows[to + 7] = cause_stored_ms
            rows[to + 8] = _NULL if attempt.state is UNFINISHED else attempt.state is SUCCEEDED
            rows[to + 9], rows[to + 10] = _stored(attempt.retry_times), _stored(attempt.duration_ms)
            rows[to + 11], rows[to + 12], rows[to + 13] = index, len(ordered), latency_ms
            rows[to + 14] = end_to_end_ms if index == first_success else _NULL
            rows[to + 15] = end_to_end_ms if index == 0 else _NULL
            rows[to + 16], rows[to + 17] = index == first_success, index == dead_index

    def _send_order(self, send: tuple[Any, ...]) -> tuple[int, str, str, int]:
        at_ms, topic, producer, kind = send[:4]
        return at_ms, self._topics[topic], self._groups[producer], -1 if kind == _NULL else kind


def _is_near(sent_ms: int, start_ms: int) -> bool:
    hour_begin_ms = start_ms // _HOUR_MS * _HOUR_MS
    return sent_ms != _NULL and sent_ms >= hour_begin_ms - _LOOKBACK_MS


def _known(value: int) -> int | None:
    return None if value == _NULL else value


def _stored(value: int | None) -> int:
    return _NULL if value is None else value

"""A seeded world of producers and consumers: trace messages, and the expected content of a lake.

Every message has a history: failed and repeated sends, groups that consume, fail, retry, exhaust
their retries or never consume, consumers with wrong clocks. Records are written as clients write
them; some records get lost, some trace messages are duplicated, some contain garbage. The world
counts the expected values during generation and never reads the records back.
"""

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from trace.attempts import RETRY_TIMES_MAX_DEFAULT

HOUR_MS: Final = 3_600_000
MINUTE_MS: Final = 60_000
RECORDS_PER_BODY: Final = 20
#: Delay between an event and its trace message, ms.
TRACE_DELAY_MS: Final = 4_000
NEVER_AFTER_MS: Final = 10 * MINUTE_MS

GROUPS: Final = {
    "orders": ("billing", "stock"),
    "payments": ("billing",),
    "mails": ("mailer", "audit", "search"),
    "clicks": ("search",),
}
TOPICS: Final = tuple(GROUPS)
LIMITS: Final = {"mailer": 3}
#: Clock errors of a group's consumers, ms.
SKEWS_MS: Final = (0, 0, 0, 40, -700, 1500)
NORMAL, HALF, DELAY, ORDER = 0, 1, 3, 4
#: Expected surviving records per message; determines the size of the world.
RECORDS_PER_MESSAGE: Final = 4.2

#: Minute, topic, msg_type.
SendKey = tuple[int, str, int]
#: Minute, topic, consumer group, msg_type.
ConsumeKey = tuple[int, str | None, str, int | None]


@dataclass(slots=True)
class Sends:
    """Expected values of `minute` for the sends of one minute."""

    sends: int = 0
    send_failures: int = 0
    bytes: int = 0
    costs: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Consumption:
    """Expected values of `minute` for the attempts of one minute."""

    attempts: int = 0
    successes: int = 0
    failures: int = 0
    unfinished: int = 0
    retries: int = 0
    dead_letters: int = 0
    deliveries: int = 0
    consumed: int = 0
    latencies: list[int] = field(default_factory=list)
    end_to_end: list[int] = field(default_factory=list)


class Missed(NamedTuple):
    """A message without a recorded attempt of a group."""

    stored_ms: int
    topic: str
    group: str


@dataclass(slots=True)
class Truth:
    """Expected content of the lake after all bodies were read."""

    bodies: int = 0
    records: int = 0
    broken: int = 0
    watermark_ms: int = 0
    sends: dict[SendKey, Sends] = field(default_factory=dict)
    consumption: dict[ConsumeKey, Consumption] = field(default_factory=dict)
    missed: list[Missed] = field(default_factory=list)

    @property
    def untraced(self) -> int:
        """The missed messages old enough to count as untraced."""
        due_ms = self.watermark_ms - NEVER_AFTER_MS
        return sum(missed.stored_ms <= due_ms for missed in self.missed)


class Attempt(NamedTuple):
    """The recorded values of one listener call."""

    start_ms: int
    retry: int | None
    success: bool | None
    duration_ms: int


class World:
    """A world for one run: `bodies` yields (store time, body); `truth` is complete afterwards."""

    def __init__(self, seed: int, messages: int, begin_ms: int, span_ms: int) -> None:
        self.truth = Truth()
        self._luck = random.Random(seed)
        self._messages = messages
        self._begin_ms = begin_ms
        self._span_ms = span_ms
        self._told: list[tuple[int, int, str]] = []
        self._number = 0

    def bodies(self) -> Iterator[tuple[int, bytes]]:
        """The trace messages in the order of their store times."""
        waiting: list[str] = []
        now_ms = self._begin_ms
        for number in range(self._messages):
            at_ms = self._begin_ms + self._span_ms * number // self._messages
            self._journey(f"7F00000100{number:022X}", at_ms)
            while self._told and self._told[0][0] <= at_ms:
                now_ms, _, record = heapq.heappop(self._told)
                waiting.append(record)
                if len(waiting) == RECORDS_PER_BODY:
                    yield from self._body(now_ms, waiting)
                    waiting = []
        while self._told:
            now_ms, _, record = heapq.heappop(self._told)
            waiting.append(record)
            if len(waiting) == RECORDS_PER_BODY or not self._told:
                yield from self._body(now_ms, waiting)
                waiting = []

    def _body(self, now_ms: int, records: list[str]) -> Iterator[tuple[int, bytes]]:
        truth, body = self.truth, "".join(records).encode()
        # A producer without a response sends its trace message again.
        for _ in range(2 if self._luck.random() < 0.01 else 1):
            truth.bodies += 1
            truth.records += len(records)
            truth.broken += sum(record[0] == "?" for record in records)
            truth.watermark_ms = max(truth.watermark_ms, now_ms)
            yield now_ms, body

    def _tell(self, at_ms: int, record: str) -> None:
        self._number += 1
        heapq.heappush(self._told, (at_ms + TRACE_DELAY_MS, self._number, record))

    def _is_told(self) -> bool:
        return self._luck.random() >= 0.004

    def _journey(self, msg_id: str, at_ms: int) -> None:
        luck = self._luck
        topic = TOPICS[int(luck.random() * len(TOPICS))]
        kind = luck.choices((NORMAL, HALF, DELAY, ORDER), (90, 4, 3, 3))[0]
        if luck.random() < 0.001:
            self._tell(at_ms, "?no record at all\x02")
        sent = self._sends(msg_id, topic, kind, at_ms)
        if sent is None:
            return
        sent_ms, stored_ms, real_stored_ms = sent
        decision = self._decision(msg_id, topic, real_stored_ms) if kind == HALF else "COMMIT"
        for group in GROUPS[topic]:
            attempts = []
            if decision != "ROLLBACK" and luck.random() >= 0.003:
                attempts = self._attempts(msg_id, group, real_stored_ms)
            if attempts:
                self._count(topic, kind, group, attempts, sent_ms, stored_ms)
            elif stored_ms is not None and kind != DELAY and decision == "COMMIT":
                self.truth.missed.append(Missed(stored_ms, topic, group))

    def _sends(
        self, msg_id: str, topic: str, kind: int, at_ms: int
    ) -> tuple[int | None, int | None, int] | None:
        """Write the attempts to send; returns recorded start, recorded store time and true store
        time.

        None when no attempt succeeded.
        """
        luck = self._luck
        size = 50 + int(luck.random() * 900)
        first_told_ms = None
        tries = 1 + (luck.random() < 0.02) + (luck.random() < 0.002)
        is_lost = luck.random() < 0.002
        for number in range(tries):
            success = number == tries - 1 and not is_lost
            cost_ms = int(luck.lognormvariate(1.2, 0.8)) if success else 3000
            middle_ms = at_ms + cost_ms // 2
            is_told = self._is_told()
            if is_told:
                self._tell(
                    at_ms + cost_ms,
                    f"Pub\x01{at_ms}\x01DefaultRegion\x01{topic}-app\x01{topic}\x01{msg_id}\x01tag"
                    f"\x01key-{msg_id[-6:]}\x0110.0.0.1:10911\x01{size}\x01{cost_ms}\x01{kind}"
                    f"\x010A00000100002A9F{msg_id[-16:]}\x01{'true' if success else 'false'}"
                    f"\x0110.0.0.7\x02",
                )
                self._count_send(topic, kind, at_ms, size, cost_ms, success)
                first_told_ms = at_ms if first_told_ms is None else first_told_ms
            if success:
                return first_told_ms, middle_ms if is_told else None, middle_ms
            at_ms += cost_ms + 1
        return None

    def _count_send(
        self, topic: str, kind: int, at_ms: int, size: int, cost_ms: int, success: bool
    ) -> None:
        key = (at_ms // MINUTE_MS * MINUTE_MS, topic, kind)
        counted = self.truth.sends.get(key)
        if counted is None:
            counted = self.truth.sends[key] = Sends()
        counted.sends += 1
        counted.send_failures += not success
        counted.bytes += size * success
        counted.costs.append(cost_ms)

    def _decision(self, msg_id: str, topic: str, stored_ms: int) -> str:
        """The recorded end of the transaction: a lost record leaves the transaction open."""
        state = "COMMIT" if self._luck.random() < 0.9 else "ROLLBACK"
        is_told = self._is_told()
        if is_told:
            self._tell(
                stored_ms + 5,
                f"EndTransaction\x01{stored_ms + 5}\x01DefaultRegion\x01{topic}-app\x01{topic}"
                f"\x01{msg_id}\x01tag\x01key\x0110.0.0.1:10911\x012\x01T{msg_id[-8:]}"
                f"\x01{state}_MESSAGE\x01false\x02",
            )
        return state if is_told or state == "ROLLBACK" else "OPEN"

    def _attempts(self, msg_id: str, group: str, stored_ms: int) -> list[Attempt]:
        """The recorded attempts of one group."""
        luck = self._luck
        is_poison = luck.random() < 0.001
        limit = LIMITS.get(group, RETRY_TIMES_MAX_DEFAULT)
        start_ms = stored_ms + 1 + int(luck.lognormvariate(3.0, 1.1))
        told = []
        for retry in range(limit + 1):
            took_ms = int(luck.lognormvariate(2.0, 1.0))
            success = not is_poison and luck.random() >= 0.03
            skew_ms = SKEWS_MS[int(luck.random() * len(SKEWS_MS))]
            attempt = self._attempt(
                msg_id, group, Attempt(start_ms + skew_ms, retry, success, took_ms)
            )
            if attempt is not None:
                told.append(attempt)
            if success:
                break
            start_ms += took_ms + 10_000 + int(luck.random() * 2000)
        return told

    def _attempt(self, msg_id: str, group: str, attempt: Attempt) -> Attempt | None:
        """Write the records of one attempt; returns the values in the surviving records."""
        start_ms, retry, success, took_ms = attempt
        end_ms = start_ms + took_ms
        request = f"{msg_id[:20]}{group[:3]}{retry}{msg_id[20:]}"
        knows_start, knows_end = self._is_told(), self._is_told()
        if knows_start:
            self._tell(
                start_ms,
                f"SubBefore\x01{start_ms}\x01DefaultRegion\x01{group}\x01{request}\x01{msg_id}"
                f"\x01{retry}\x01key-{msg_id[-6:]}\x02",
            )
        if knows_end:
            flag, code = ("true", 0) if success else ("false", 4)
            self._tell(
                end_ms,
                f"SubAfter\x01{request}\x01{msg_id}\x01{took_ms}\x01{flag}\x01key-{msg_id[-6:]}"
                f"\x01{code}\x01{end_ms}\x01{group}\x02",
            )
        if not knows_start and not knows_end:
            return None
        return Attempt(
            start_ms, retry if knows_start else None, success if knows_end else None, took_ms
        )

    def _count(
        self,
        topic: str,
        kind: int,
        group: str,
        attempts: list[Attempt],
        sent_ms: int | None,
        stored_ms: int | None,
    ) -> None:
        """The intervals of retries exceed every clock error here, so the order of retries is
        stable.
        """
        is_known = sent_ms is not None
        succeeded = False
        for place, (start_ms, retry, success, took_ms) in enumerate(attempts):
            minute = start_ms // MINUTE_MS * MINUTE_MS
            key = (minute, topic, group, kind) if is_known else (minute, None, group, None)
            counted = self.truth.consumption.get(key)
            if counted is None:
                counted = self.truth.consumption[key] = Consumption()
            counted.attempts += 1
            counted.successes += success is True
            counted.failures += success is False
            counted.unfinished += success is None
            counted.retries += bool(retry)
            counted.deliveries += place == 0
            if place == 0 and stored_ms is not None:
                counted.latencies.append(max(0, start_ms - stored_ms))
            if success and not succeeded:
                succeeded = True
                counted.consumed += 1
                if sent_ms is not None:
                    counted.end_to_end.append(max(start_ms, sent_ms) + took_ms - sent_ms)
            is_last = place == len(attempts) - 1
            limit = LIMITS.get(group, RETRY_TIMES_MAX_DEFAULT)
            is_final = retry is not None and retry >= limit
            counted.dead_letters += is_last and is_final and success is False

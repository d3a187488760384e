"""The history of a test: sent messages, acknowledgements, and messages read after a restart.

    begin(number, queue, body)      a message is sent; until an answer the outcome is unknown
    stored(number, offset)          acknowledged with an offset: the message must survive a kill
    synced(number)                  the message must survive a power cut, too
    power_cut()                     messages without a sync may be lost

`check` compares the history with the messages read after a restart. All lists must be empty:

    lost        acknowledged, but not read
    invented    read, but never sent
    altered     read with different content, or a different message at an acknowledged offset
    reordered   stored before a message whose acknowledgement preceded the send
    gaps        offsets without a message, except offsets of damaged messages and offsets before
                a damaged message: a damaged message may show a later offset
    holes       written before the end of the log, but not read: the loss is not a tail of the log
    duplicates  read twice, but sent once

Messages without an answer are `unknown`: read or not read, both are allowed.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

#: Topic and queue id.
Queue = tuple[str, int]


class Found(NamedTuple):
    """One message read after a restart."""

    offset: int
    number: int
    body: bytes


@dataclass(slots=True)
class Sent:
    """The sender's record of one message."""

    queue: Queue
    body: bytes
    #: Event numbers of the send and of the acknowledgement.
    begun_at: int
    stored_at: int = 0
    offset: int = -1
    #: Start and end in the commit log; -1 when unknown to the test.
    start_physical: int = -1
    end_physical: int = -1
    must_survive_kill: bool = False
    must_survive_cut: bool = False
    is_damaged: bool = False


@dataclass(slots=True)
class Verdict:
    """The problems found by a check, one sentence each; unknown messages are only counted."""

    lost: list[str] = field(default_factory=list)
    invented: list[str] = field(default_factory=list)
    altered: list[str] = field(default_factory=list)
    reordered: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    holes: list[str] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)
    unknown_found: int = 0
    unknown_absent: int = 0

    @property
    def problems(self) -> list[str]:
        """All problems, with the kind of each problem."""
        return [
            f"{kind}: {text}"
            for kind in ("lost", "invented", "altered", "reordered", "gaps", "holes", "duplicates")
            for text in getattr(self, kind)
        ]

    @property
    def is_clean(self) -> bool:
        """True without problems."""
        return not self.problems


class History:
    """Collects the reports of senders, and checks the messages read by a reader."""

    def __init__(self) -> None:
        self._sent: dict[int, Sent] = {}
        self._events = 0
        self._numbers = 0
        #: Queue → offset → number of the acknowledged message.
        self._numbers_by_offset: dict[Queue, dict[int, int]] = defaultdict(dict)
        self._offsets_used_twice: list[str] = []
        #: First offsets of queues with expired messages.
        self._firsts: dict[Queue, int] = {}

    @property
    def acknowledged(self) -> int:
        """The number of messages required to survive a kill."""
        return sum(sent.must_survive_kill for sent in self._sent.values())

    @property
    def spans(self) -> dict[int, tuple[int, int]]:
        """The known commit-log spans of the messages required to survive a kill."""
        return {
            number: (sent.start_physical, sent.end_physical)
            for number, sent in self._sent.items()
            if sent.must_survive_kill and sent.end_physical >= 0
        }

    def body(self, number: int) -> bytes:
        """The body of a sent message."""
        return self._sent[number].body

    def is_damaged(self, number: int) -> bool:
        """True for a message damaged by the test."""
        return self._sent[number].is_damaged

    # -- reports of senders --

    def next_number(self) -> int:
        """A new message number."""
        self._numbers += 1
        return self._numbers

    def begin(self, number: int, queue: Queue, body: bytes) -> None:
        """Record a message before the send; the number must be unused."""
        assert number not in self._sent, f"the test sends {number} twice"
        self._sent[number] = Sent(queue, body, self._event())

    def stored(self, number: int, offset: int, span: tuple[int, int] = (-1, -1)) -> None:
        """Record the acknowledgement of a message with the offset in the queue.

        `span` is the start and end in the commit log, if known to the test.
        """
        sent = self._sent[number]
        expected = self._number_at(sent.queue, offset)
        if expected not in (None, number):
            self._offsets_used_twice.append(
                f"{sent.queue} offset {offset} for {expected} and {number}"
            )
        else:
            self._numbers_by_offset[sent.queue][offset] = number
        sent.stored_at, sent.offset = self._event(), offset
        sent.start_physical, sent.end_physical = span
        sent.must_survive_kill = True

    def synced(self, number: int) -> None:
        """Record the acknowledged sync of a stored message."""
        self._sent[number].must_survive_cut = True

    def power_cut(self) -> None:
        """Mark messages without a sync as unknown."""
        for sent in self._sent.values():
            if sent.must_survive_kill and not (sent.must_survive_cut or sent.is_damaged):
                sent.must_survive_kill = False
                self._numbers_by_offset[sent.queue].pop(sent.offset, None)

    def expired(self, queue: Queue, first: int) -> None:
        """Record the new first offset of a queue after the deletion of expired messages."""
        self._firsts[queue] = first
        for sent in self._sent.values():
            if sent.queue == queue and 0 <= sent.offset < first:
                sent.must_survive_kill = False
                self._numbers_by_offset[queue].pop(sent.offset, None)

    def damaged(self, number: int) -> None:
        """Record damage to a message by the test: only the damaged message may be missing."""
        self._sent[number].is_damaged = True

    # -- checks --

    def check(self, queues: Mapping[Queue, Sequence[Found]], log_end: int | None = None) -> Verdict:
        """Compare the history with all messages read after a restart.

        With `log_end`, the end of the recovered log, messages before the end must not be missing.
        Messages read now must be read by all later checks too.
        """
        verdict = Verdict(altered=list(self._offsets_used_twice))
        seen: set[int] = set()
        for queue, found in queues.items():
            self._check_queue(queue, found, seen, verdict)
        for number, sent in self._sent.items():
            if number in seen:
                continue
            if sent.is_damaged:
                sent.end_physical = -1  # later messages may overwrite the span
                continue
            name = f"{number} of {sent.queue} at {sent.offset}"
            if sent.must_survive_kill:
                verdict.lost.append(name)
            else:
                verdict.unknown_absent += 1
                if log_end is not None and 0 <= sent.end_physical <= log_end:
                    verdict.holes.append(f"{name}, ending at {sent.end_physical} of {log_end}")
                sent.end_physical = -1
        return verdict

    def _check_queue(
        self, queue: Queue, found: Iterable[Found], seen: set[int], verdict: Verdict
    ) -> None:
        expected, newest_begin = self._firsts.get(queue, 0), 0
        numbers = self._numbers_by_offset[queue]
        for offset, number, body in found:
            sent = self._sent.get(number)
            name = f"{number} at {offset} of {queue}"
            is_damaged = sent is not None and sent.is_damaged
            while expected < offset:
                if not is_damaged and not self._is_damaged_number(numbers.get(expected)):
                    verdict.gaps.append(f"{queue} offset {expected}")
                expected += 1
            expected = offset + 1
            if is_damaged:
                seen.add(number)
                continue
            if sent is None or sent.queue != queue:
                verdict.invented.append(name)
                continue
            if sent.body != body or self._number_at(queue, offset) not in (None, number):
                verdict.altered.append(name)
            if number in seen:
                verdict.duplicates.append(name)
            seen.add(number)
            if not sent.must_survive_kill:
                verdict.unknown_found += 1
            elif sent.stored_at < newest_begin:
                verdict.reordered.append(name)
            newest_begin = max(newest_begin, sent.begun_at)
            self._require(number, sent, offset)

    def _require(self, number: int, sent: Sent, offset: int) -> None:
        """Require a message read after a restart in all later checks."""
        if not sent.must_survive_kill:
            sent.offset, sent.stored_at = offset, self._event()
            self._numbers_by_offset[sent.queue][offset] = number
        sent.must_survive_kill = sent.must_survive_cut = True

    def _number_at(self, queue: Queue, offset: int) -> int | None:
        """The number of the message required at an offset; None for a damaged message."""
        number = self._numbers_by_offset[queue].get(offset)
        return None if self._is_damaged_number(number) else number

    def _is_damaged_number(self, number: int | None) -> bool:
        return number is not None and self._sent[number].is_damaged

    def _event(self) -> int:
        self._events += 1
        return self._events

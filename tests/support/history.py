"""The history of a test: what was sent, what was said about it, and what was found afterwards.

    begin(number, queue, body)      a message goes out; from now on it may be there or not
    stored(number, offset)          it must survive a kill: the broker said where it lies
    synced(number)                  it must survive a power cut, too
    power_cut()                     what was not synced may be gone

`check` compares all of it with what is read after a restart:

    lost        acknowledged, and not there             must be empty
    invented    there, and never sent                   must be empty
    altered     there with other content, or another message at an acknowledged offset     empty
    reordered   stored before a message that was acknowledged before it was sent           empty
    gaps        offsets without a message               must be empty, but for damaged ones, and
                before those: a damaged message may tell a later place than its own
    holes       written before the end of the log and not there: what is lost is no tail   empty
    duplicates  there twice: the same message sent once must be empty
    unknown     sent, and no answer says what became of it: either is allowed
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

#: Topic and queue id.
Queue = tuple[str, int]


class Found(NamedTuple):
    """One message as it was read."""

    offset: int
    number: int
    body: bytes


@dataclass(slots=True)
class Sent:
    """What the sender knows of one message."""

    queue: Queue
    body: bytes
    #: Numbers of the events at which it went out and was acknowledged.
    begun_at: int
    stored_at: int = 0
    offset: int = -1
    #: In the commit log, where the test knows that.
    start_physical: int = -1
    end_physical: int = -1
    must_survive_kill: bool = False
    must_survive_cut: bool = False
    is_damaged: bool = False


@dataclass(slots=True)
class Verdict:
    """What is wrong, one sentence each; `unknown` is counted only."""

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
        """Everything that must not be."""
        return [
            f"{kind}: {text}"
            for kind in ("lost", "invented", "altered", "reordered", "gaps", "holes", "duplicates")
            for text in getattr(self, kind)
        ]

    @property
    def is_clean(self) -> bool:
        """Nothing is wrong."""
        return not self.problems


class History:
    """Senders report to it; whoever reads everything asks it."""

    def __init__(self) -> None:
        self._sent: dict[int, Sent] = {}
        self._events = 0
        self._numbers = 0
        #: Queue → offset → number, for what was acknowledged.
        self._places: dict[Queue, dict[int, int]] = defaultdict(dict)
        self._given_twice: list[str] = []
        #: Where queues begin that do not begin at 0.
        self._firsts: dict[Queue, int] = {}

    @property
    def acknowledged(self) -> int:
        """How many messages must be there now."""
        return sum(each.must_survive_kill for each in self._sent.values())

    @property
    def spans(self) -> dict[int, tuple[int, int]]:
        """Where in the log the messages lie that must be there, as far as the test told."""
        return {
            number: (each.start_physical, each.end_physical)
            for number, each in self._sent.items()
            if each.must_survive_kill and each.end_physical >= 0
        }

    def body(self, number: int) -> bytes:
        """What a message was sent with."""
        return self._sent[number].body

    def is_damaged(self, number: int) -> bool:
        """Tell whether the test damaged a message."""
        return self._sent[number].is_damaged

    # -- what senders report --

    def next_number(self) -> int:
        """A number that no message has yet."""
        self._numbers += 1
        return self._numbers

    def begin(self, number: int, queue: Queue, body: bytes) -> None:
        """Note a message before it goes out; its number is its own for ever."""
        assert number not in self._sent, f"the test sends {number} twice"
        self._sent[number] = Sent(queue, body, self._event())

    def stored(self, number: int, offset: int, span: tuple[int, int] = (-1, -1)) -> None:
        """Note that a message was said to be stored at an offset of its queue.

        `span` is where it begins and ends in the commit log, where the test knows that.
        """
        sent = self._sent[number]
        other = self._place(sent.queue, offset)
        if other not in (None, number):
            self._given_twice.append(f"{sent.queue} offset {offset} for {other} and {number}")
        else:
            self._places[sent.queue][offset] = number
        sent.stored_at, sent.offset = self._event(), offset
        sent.start_physical, sent.end_physical = span
        sent.must_survive_kill = True

    def synced(self, number: int) -> None:
        """Note that a stored message was said to be on the disk."""
        self._sent[number].must_survive_cut = True

    def power_cut(self) -> None:
        """From now on, what was not synced is unknown."""
        for sent in self._sent.values():
            if sent.must_survive_kill and not (sent.must_survive_cut or sent.is_damaged):
                sent.must_survive_kill = False
                self._places[sent.queue].pop(sent.offset, None)

    def expired(self, queue: Queue, first: int) -> None:
        """Note that a queue begins at an offset now: what lay before it was deleted by age."""
        self._firsts[queue] = first
        for sent in self._sent.values():
            if sent.queue == queue and 0 <= sent.offset < first:
                sent.must_survive_kill = False
                self._places[queue].pop(sent.offset, None)

    def damaged(self, number: int) -> None:
        """The test itself damages this message: it may be missing, but nothing else."""
        self._sent[number].is_damaged = True

    # -- what is asked --

    def check(self, queues: Mapping[Queue, Sequence[Found]], log_end: int | None = None) -> Verdict:
        """Compare with everything that was read.

        With `log_end`, the end of the recovered log, nothing before it may be missing. What was
        found must be there from now on, whatever happens.
        """
        verdict = Verdict(altered=list(self._given_twice))
        seen: set[int] = set()
        for queue, found in queues.items():
            self._check_queue(queue, found, seen, verdict)
        for number, sent in self._sent.items():
            if number in seen:
                continue
            if sent.is_damaged:
                sent.end_physical = -1  # another message may lie there
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
        places = self._places[queue]
        for offset, number, body in found:
            sent = self._sent.get(number)
            name = f"{number} at {offset} of {queue}"
            is_damaged = sent is not None and sent.is_damaged
            while expected < offset:
                if not is_damaged and not self._is_damaged_place(places.get(expected)):
                    verdict.gaps.append(f"{queue} offset {expected}")
                expected += 1
            expected = offset + 1
            if is_damaged:
                seen.add(number)
                continue
            if sent is None or sent.queue != queue:
                verdict.invented.append(name)
                continue
            if sent.body != body or self._place(queue, offset) not in (None, number):
                verdict.altered.append(name)
            if number in seen:
                verdict.duplicates.append(name)
            seen.add(number)
            if not sent.must_survive_kill:
                verdict.unknown_found += 1
            elif sent.stored_at < newest_begin:
                verdict.reordered.append(name)
            newest_begin = max(newest_begin, sent.begun_at)
            self._keep(number, sent, offset)

    def _keep(self, number: int, sent: Sent, offset: int) -> None:
        """What a reader has seen after a restart stays."""
        if not sent.must_survive_kill:
            sent.offset, sent.stored_at = offset, self._event()
            self._places[sent.queue][offset] = number
        sent.must_survive_kill = sent.must_survive_cut = True

    def _place(self, queue: Queue, offset: int) -> int | None:
        """Which message must be at an offset; a damaged one may have made way."""
        number = self._places[queue].get(offset)
        return None if self._is_damaged_place(number) else number

    def _is_damaged_place(self, number: int | None) -> bool:
        return number is not None and self._sent[number].is_damaged

    def _event(self) -> int:
        self._events += 1
        return self._events

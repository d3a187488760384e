"""state/long_poll.py: every pull is answered exactly once, in any order of events."""

from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from core_broker.state.long_poll import DEADLINE_STEP_MS, HeldPull, HeldPulls


def pull(
    name: str,
    *,
    owner: str = "c",
    topic: str = "T",
    queue_id: int = 0,
    offset: int = 0,
    accept: Callable[[int], bool] | None = None,
    deadline_ms: int = 1000,
) -> HeldPull[str]:
    return HeldPull(owner, topic, queue_id, offset, accept, deadline_ms, name)


def names(pulls: list[HeldPull[str]]) -> list[str]:
    return [each.query for each in pulls]


def arrived(held: HeldPulls[Any], topic: str, queue_id: int, offset: int, tags_code: int) -> None:
    held.arrived(topic, queue_id, offset, offset + 1, lambda: [tags_code])


def test_a_message_wakes_pulls_at_its_queue_and_offset() -> None:
    held: HeldPulls[str] = HeldPulls()
    for each in (
        pull("right", offset=5),
        pull("later", offset=6),
        pull("other queue", queue_id=1),
        pull("other topic", topic="U"),
    ):
        assert held.hold(each)
    arrived(held, "T", 0, 5, 0)
    assert names(held.take_ready()) == ["right"]
    assert len(held) == 3
    assert held.take_ready() == []


def test_many_messages_of_a_turn_wake_a_pull_once() -> None:
    held: HeldPulls[str] = HeldPulls()
    held.hold(pull("one"))
    for offset in range(10):
        arrived(held, "T", 0, offset, 0)
    assert names(held.take_ready()) == ["one"]


def test_messages_before_the_awaited_offset_are_ignored() -> None:
    held: HeldPulls[str] = HeldPulls()
    accept = frozenset({65}).__contains__
    held.hold(pull("before", offset=5, accept=accept))
    held.hold(pull("behind", offset=7, accept=accept))
    held.hold(pull("later", offset=8))
    held.arrived("T", 0, 5, 8, lambda: [64, 65, 66])
    assert names(held.take_ready()) == ["before"]
    assert len(held) == 2


def test_a_filter_keeps_a_pull_waiting() -> None:
    held: HeldPulls[str] = HeldPulls()
    held.hold(pull("tagged", accept=frozenset({65}).__contains__))
    arrived(held, "T", 0, 0, 66)
    assert not held.has_ready
    arrived(held, "T", 0, 1, 65)
    assert names(held.take_ready()) == ["tagged"]


def test_deadlines_are_kept_to_their_step_and_never_early() -> None:
    held: HeldPulls[str] = HeldPulls()
    held.hold(pull("first", deadline_ms=1000))
    held.hold(pull("second", deadline_ms=1001))
    assert held.take_expired(999) == []
    assert names(held.take_expired(1000)) == ["first"]
    assert names(held.take_expired(1000 + DEADLINE_STEP_MS)) == ["second"]
    assert len(held) == 0


def test_ready_pulls_of_a_closed_connection_are_dropped() -> None:
    held: HeldPulls[str] = HeldPulls()
    held.hold(pull("ready", owner="gone"))
    held.hold(pull("waiting", owner="gone", topic="U"))
    held.hold(pull("stays", owner="here", topic="U"))
    arrived(held, "T", 0, 0, 0)
    held.drop_owner("gone")
    held.drop_owner("unknown")
    assert names(held.take_all()) == ["stays"]


def test_a_full_table_holds_no_more() -> None:
    held: HeldPulls[str] = HeldPulls(capacity=1)
    assert held.hold(pull("fits"))
    assert not held.hold(pull("does not"))
    held.take_all()
    assert held.hold(pull("fits again"))


def test_stopping_hands_out_ready_and_waiting() -> None:
    held: HeldPulls[str] = HeldPulls()
    held.hold(pull("ready"))
    held.hold(pull("waiting", topic="U"))
    arrived(held, "T", 0, 0, 0)
    assert names(held.take_all()) == ["ready", "waiting"]
    assert len(held) == 0


class LongPollMachine(RuleBasedStateMachine):
    """Compares HeldPulls with plain lists of held pulls and ready pulls."""

    def __init__(self) -> None:
        super().__init__()
        self.held: HeldPulls[int] = HeldPulls(capacity=20)
        self.waiting: list[HeldPull[int]] = []
        self.ready: list[HeldPull[int]] = []
        self.count = 0
        self.now_ms = 0

    @rule(
        owner=st.integers(0, 2),
        topic=st.sampled_from("TU"),
        queue_id=st.integers(0, 1),
        offset=st.integers(0, 3),
        tags=st.none() | st.frozensets(st.integers(0, 2)),
        wait_ms=st.integers(-10, 2000),
    )
    def hold(
        self,
        owner: int,
        topic: str,
        queue_id: int,
        offset: int,
        tags: frozenset[int] | None,
        wait_ms: int,
    ) -> None:
        self.count += 1
        accept = tags.__contains__ if tags is not None else None
        each = HeldPull(owner, topic, queue_id, offset, accept, self.now_ms + wait_ms, self.count)
        assert self.held.hold(each) == (len(self.waiting) < 20)
        if len(self.waiting) < 20:
            self.waiting.append(each)

    @rule(
        topic=st.sampled_from("TUV"),
        queue_id=st.integers(0, 2),
        offset=st.integers(0, 3),
        tags_code=st.integers(0, 2),
    )
    def arrive(self, topic: str, queue_id: int, offset: int, tags_code: int) -> None:
        arrived(self.held, topic, queue_id, offset, tags_code)
        woken = [
            each
            for each in self.waiting
            if (each.topic, each.queue_id) == (topic, queue_id)
            and offset >= each.offset
            and (each.accept is None or each.accept(tags_code))
        ]
        self.waiting = [each for each in self.waiting if each not in woken]
        self.ready += woken

    @rule()
    def take_ready(self) -> None:
        assert self.held.take_ready() == self.ready
        self.ready = []

    @rule(step_ms=st.integers(0, 700))
    def time_passes(self, step_ms: int) -> None:
        self.now_ms += step_ms
        expired = self.held.take_expired(self.now_ms)
        assert all(each.deadline_ms <= self.now_ms for each in expired)
        assert {each.query for each in expired} <= {each.query for each in self.waiting}
        self.waiting = [each for each in self.waiting if each not in expired]
        overdue = self.now_ms - DEADLINE_STEP_MS
        assert all(each.deadline_ms > overdue for each in self.waiting)

    @precondition(lambda self: self.count)
    @rule(owner=st.integers(0, 2))
    def close(self, owner: int) -> None:
        self.held.drop_owner(owner)
        self.waiting = [each for each in self.waiting if each.owner != owner]
        self.ready = [each for each in self.ready if each.owner != owner]

    @rule()
    def stop(self) -> None:
        everything = {each.query for each in self.held.take_all()}
        assert everything == {each.query for each in self.waiting + self.ready}
        self.waiting, self.ready = [], []

    @invariant()
    def counts_agree(self) -> None:
        assert len(self.held) == len(self.waiting)
        assert self.held.has_ready == bool(self.ready)


TestLongPollMachine = LongPollMachine.TestCase
TestLongPollMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_a_parked_pull_waits_for_its_owner() -> None:
    """A parked pull is not ready before `unpark`; `drop_owner` drops the pull."""
    held: HeldPulls[str] = HeldPulls()
    for owner in ("slow", "gone", "stop"):
        held.hold(pull(owner, owner=owner))
    arrived(held, "T", 0, 0, 0)
    for each in held.take_ready():
        held.park(each)
    assert not held.has_ready
    held.drop_owner("gone")
    held.unpark("gone")
    held.unpark("slow")
    assert names(held.take_ready()) == ["slow"]
    assert names(held.take_all()) == ["stop"]

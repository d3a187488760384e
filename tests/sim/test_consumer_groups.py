"""Consumers that join, leave, fail and are reset, on the real processors and a real store.

After any sequence of actions, each message is consumed, pending a retry, a dead letter, or skipped
by an administrator; all messages below a committed offset are consumed; and an orderly queue has at
most one owner with a valid lock. `SEEDS` sets how many schedules run.
"""

import asyncio
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from core_broker.message.model import MessageExt
from core_broker.message.topics import dlq_topic
from core_broker.remoting.bodies import MessageQueue, ResetOffsetBody, decode_body
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.headers import ResetOffsetRequestHeader
from core_broker.state.channels import CHANNEL_EXPIRED_MS
from core_broker.state.queue_locks import LOCK_LIVE_MS
from tests.support.broker_harness import BrokerHarness
from tests.support.group_members import BROKER, GROUP, TOPIC, Member

SEEDS = int(os.environ.get("SEEDS", "40"))
STEPS = 40
QUEUES = 3
MEMBERS_MAX = 4
#: With the filter, every third message is not wanted.
FILTER = "third <> '0'"
HOUR_MS = 3_600_000

T = TypeVar("T")
PICKS = st.integers(0, 1_000)


class GroupMachine(RuleBasedStateMachine):
    """One group on one topic."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.loop = asyncio.new_event_loop()
        self.broker = self.run(
            lambda: BrokerHarness(Path(self.folder.name), enable_property_filter=True)
        )
        self.broker.topic(TOPIC, queues=QUEUES)
        self.members: list[Member] = []
        self.names = 0
        self.sent: dict[MessageQueue, list[int]] = {
            MessageQueue(TOPIC, BROKER, queue): [] for queue in range(QUEUES)
        }
        self.numbers = 0
        self.consumed: set[int] = set()
        self.sent_back: set[int] = set()
        self.skipped: set[int] = set()
        self.is_orderly = False
        self.expression = "*"

    def run(self, work: Callable[[], T]) -> T:
        """Run an action on the loop, and send the resulting notices."""

        async def once() -> T:
            result = work()
            for _ in range(3):
                await asyncio.sleep(0)
            return result

        return self.loop.run_until_complete(once())

    # -- actions --

    @initialize(is_orderly=st.booleans(), expression=st.sampled_from(["*", FILTER]))
    def begin(self, is_orderly: bool, expression: str) -> None:
        self.is_orderly, self.expression = is_orderly, expression
        for queue in range(QUEUES):
            self.send(queue, 4)
        self.join()

    @rule(queue=st.integers(0, QUEUES - 1), count=st.integers(1, 4))
    def send(self, queue: int, count: int) -> None:
        for _ in range(count):
            number = self.numbers
            self.numbers += 1
            work = self.broker.send(TOPIC, b"%d" % number, f"third\x01{number % 3}", queue_id=queue)
            answer = self.loop.run_until_complete(work)
            numbers = self.sent[MessageQueue(TOPIC, BROKER, queue)]
            assert int(answer.ext_fields["queueOffset"]) == len(numbers)
            numbers.append(number)

    @precondition(lambda self: len(self.members) < MEMBERS_MAX)
    @rule()
    def join(self) -> None:
        self.names += 1
        others = list(self.members)
        member = self.run(
            lambda: Member(
                self.broker,
                f"c{self.names}",
                self.is_orderly,
                self.expression,
                self.note_consumed,
                self.note_skipped,
            )
        )
        self.expect_notices([*others, member])
        self.members.append(member)
        self.run(member.rebalance)

    @precondition(lambda self: self.members)
    @rule(pick=PICKS)
    def leave(self, pick: int) -> None:
        member = self.take(pick)
        self.run(member.leave)
        self.expect_notices(self.members)
        self.run(member.lose_connection)

    @precondition(lambda self: self.members)
    @rule(pick=PICKS)
    def lose_connection(self, pick: int) -> None:
        member = self.take(pick)
        self.run(member.lose_connection)
        self.expect_notices(self.members)

    @precondition(lambda self: self.members)
    @rule(pick=PICKS)
    def listen(self, pick: int) -> None:
        self.run(self.members[pick % len(self.members)].listen)

    @precondition(lambda self: self.members)
    @rule(pick=PICKS)
    def rebalance(self, pick: int) -> None:
        self.run(self.members[pick % len(self.members)].rebalance)

    @precondition(lambda self: self.members)
    @rule(pick=PICKS)
    def renew_locks(self, pick: int) -> None:
        member = self.members[pick % len(self.members)]
        self.run(member.renew_locks)

    @precondition(lambda self: self.members)
    @rule(pick=PICKS, count=st.integers(1, 3), waits=st.booleans(), fails=st.booleans())
    def consume(self, pick: int, count: int, waits: bool, fails: bool) -> None:
        member = self.members[pick % len(self.members)]
        for queue in list(member.shares):
            self.run(
                lambda queue=queue: member.consume(  # type: ignore[misc]
                    queue, count=count, waits=waits, fails=fails
                )
            )

    @precondition(lambda self: self.members)
    @rule(count=st.integers(1, 5), waits=st.booleans(), fails=st.booleans())
    def everybody_works(self, count: int, waits: bool, fails: bool) -> None:
        """Send messages; each member is notified, and consumes some."""
        for queue in range(QUEUES):
            self.send(queue, 2)
        for at, member in enumerate(self.members):
            self.run(member.listen)
            self.consume(at, count, waits, fails)

    @precondition(lambda self: self.members)
    @rule(pick=PICKS)
    def commit(self, pick: int) -> None:
        member = self.members[pick % len(self.members)]
        for queue in list(member.shares):
            self.run(lambda queue=queue: member.commit(queue))  # type: ignore[misc]

    @rule(back_ms=st.sampled_from([-1, 0, 500, 5_000, 60_000]), is_force=st.booleans())
    def reset(self, back_ms: int, is_force: bool) -> None:
        timestamp = -1 if back_ms < 0 else self.broker.now_ms - back_ms
        header = ResetOffsetRequestHeader(
            topic=TOPIC, group=GROUP, timestamp=timestamp, is_force=is_force
        )
        ask = self.broker.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
        answer = self.loop.run_until_complete(ask)
        assert answer.code in {0, 1, 206}
        if answer.code != 0:
            return
        for queue, offset in decode_body(ResetOffsetBody, answer.body).offset_table.items():
            committed = self.committed(queue)
            assert is_force or offset <= committed
            # Messages skipped by an administrator are not lost.
            self.skipped.update(self.sent[queue][committed:offset])
        for member in self.members:
            assert any(told.code == 220 for told in member.peer.told)

    @rule(passed_ms=st.sampled_from([100, 5_000, 20_000, 31_000, LOCK_LIVE_MS + 1]))
    def time_passes(self, passed_ms: int) -> None:
        self.broker.now_ms += passed_ms
        self.run(lambda: self.broker.ctx.locks.expire(self.broker.now_ms))
        self.run(self.broker.requests.pulls.expire)
        self.run(self.broker.delays.deliver_due)
        for member in self.members:
            self.run(member.send_heartbeat)

    @precondition(lambda self: self.members)
    @rule(pick=PICKS)
    def fall_silent(self, pick: int) -> None:
        """A member stops sending heartbeats; the broker closes the connection."""
        member = self.take(pick)
        for _ in range(2):
            self.broker.now_ms += CHANNEL_EXPIRED_MS // 2 + 1
            for other in self.members:
                self.run(other.send_heartbeat)
        self.run(self.broker.requests.clients.close_silent)
        assert not member.is_connected
        assert all(other.is_connected for other in self.members)
        self.run(member.lose_connection)
        self.expect_notices(self.members)

    # -- records --

    def take(self, pick: int) -> Member:
        return self.members.pop(pick % len(self.members))

    def committed(self, queue: MessageQueue) -> int:
        return self.broker.ctx.offsets.committed(GROUP, queue.topic, queue.queue_id) or 0

    def is_wanted(self, number: int) -> bool:
        return self.expression == "*" or number % 3 != 0

    def note_consumed(self, queue: MessageQueue, message: MessageExt, is_done: bool) -> None:
        number = int(message.body)
        assert self.is_wanted(number)
        if queue.topic == TOPIC:
            assert self.sent[queue][message.queue_offset] == number
        (self.consumed if is_done else self.sent_back).add(number)

    def note_skipped(self, queue: MessageQueue, first: int, end: int) -> None:
        if queue.topic == TOPIC:
            assert not any(map(self.is_wanted, self.sent[queue][first:end])), (queue, first, end)
        else:
            assert first == end

    def expect_notices(self, members: list[Member]) -> None:
        for member in members:
            assert any(told.code == 40 for told in member.peer.told), member.client_id

    # -- checks --

    @invariant()
    def nothing_below_a_committed_offset_is_unseen(self) -> None:
        for queue, numbers in self.sent.items():
            seen = self.consumed | self.sent_back | self.skipped
            passed = numbers[: self.committed(queue)]
            assert all(number in seen or not self.is_wanted(number) for number in passed)

    @invariant()
    def no_orderly_queue_has_two_live_owners(self) -> None:
        if not self.is_orderly:
            return
        owners: dict[MessageQueue, str] = {}
        for member in self.members:
            for queue, share in member.shares.items():
                if self.broker.now_ms - share.locked_ms <= LOCK_LIVE_MS:
                    assert queue not in owners, (queue, owners[queue], member.client_id)
                    owners[queue] = member.client_id

    def teardown(self) -> None:
        try:
            self.drain()
        finally:
            self.run(self.broker.close)
            self.loop.close()
            self.folder.cleanup()

    def drain(self) -> None:
        """All members vanish, and a new member consumes the rest: no message may be missing."""
        while self.members:
            self.lose_connection(0)
        self.broker.now_ms += LOCK_LIVE_MS + 1
        self.join()
        (last,) = self.members
        before = -1
        while before != len(self.consumed) + sum(
            share.next_offset for share in last.shares.values()
        ):
            before = len(self.consumed) + sum(share.next_offset for share in last.shares.values())
            self.broker.now_ms += HOUR_MS
            self.run(self.broker.delays.deliver_due)
            self.run(last.send_heartbeat)
            self.run(last.renew_locks)
            for _ in range(3):
                self.consume(0, 32, False, False)
        assert len(last.shares) == QUEUES + 1
        dead = self.loop.run_until_complete(self.broker.messages(dlq_topic(GROUP)))
        seen = self.consumed | self.skipped | {int(message.body) for message in dead}
        assert {number for number in range(self.numbers) if self.is_wanted(number)} <= seen


def test_consumers_that_join_leave_fail_and_are_reset() -> None:
    run_state_machine_as_test(
        GroupMachine,
        settings=settings(
            max_examples=SEEDS,
            stateful_step_count=STEPS,
            suppress_health_check=list(HealthCheck),
        ),
    )

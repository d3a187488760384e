"""What a leader sends to a follower: bounded in bytes, without haste, and only what it has."""

from random import Random

from core_broker.dledger.codes import DLedgerCode, PushKind
from core_broker.dledger.messages import PushResponse
from core_broker.dledger.model import NOTHING, Effect, Push, Role, Timing
from core_broker.dledger.progress import IN_FLIGHT_BYTES_MAX, Progress
from core_broker.dledger.state import NodeState
from tests.support.dledger_group import MemoryLog


class Leader:
    """A leader with one follower, whose answers the test gives."""

    def __init__(self, log: MemoryLog) -> None:
        self.log = log
        self.state = NodeState(
            *("g", "n0", ("n0", "n1"), log, Timing(), Random(1)), term=1, vote=None, commit_index=-1
        )
        self.state.role = Role.LEADER
        self.progress = Progress(self.state, "n1")

    def pushes(self) -> list[Push]:
        self.progress.pump()
        effects: list[Effect] = self.state.effects
        self.state.effects = []
        pushes = [each for each in effects if isinstance(each, Push)]
        return [each for each in pushes if each.kind is not PushKind.COMMIT]

    def answer(self, push: Push, code: DLedgerCode, end: int) -> None:
        begin = NOTHING if end == NOTHING else 0
        self.progress.answered(push, PushResponse(code=code, begin_index=begin, end_index=end))


def test_large_entries_are_sent_a_few_at_a_time() -> None:
    log = MemoryLog()
    body = bytes(1_000_000)
    for _ in range(100):
        log.write(1, body)
    leader, end = Leader(log), 0
    waiting: list[Push] = []
    (compare,) = leader.pushes()
    leader.answer(compare, DLedgerCode.INCONSISTENT_STATE, 0)
    (compare,) = leader.pushes()
    leader.answer(compare, DLedgerCode.SUCCESS, 0)
    while waiting := waiting + leader.pushes():
        assert sum(log.size_of(each.first, each.last) for each in waiting) <= IN_FLIGHT_BYTES_MAX
        first = waiting.pop(0)
        assert (first.kind, first.first) == (PushKind.APPEND, end + 1)
        end = first.last
        leader.answer(first, DLedgerCode.SUCCESS, end)
    assert leader.progress.match == end == 99


def test_one_entry_is_sent_whatever_its_size() -> None:
    log = MemoryLog()
    log.write(1, b"x")
    log.write(1, bytes(IN_FLIGHT_BYTES_MAX + 1))
    leader = Leader(log)
    (compare,) = leader.pushes()
    leader.answer(compare, DLedgerCode.INCONSISTENT_STATE, 0)
    (compare,) = leader.pushes()
    leader.answer(compare, DLedgerCode.SUCCESS, 0)
    assert [(each.first, each.last) for each in leader.pushes()] == [(1, 1)]


def test_an_entry_that_stays_refused_is_sent_with_pauses() -> None:
    log = MemoryLog()
    for _ in range(4):
        log.write(1, b"x")
    leader, sent = Leader(log), 0
    while pushes := leader.pushes():
        for push in pushes:
            sent += 1
            assert sent < 20, "no pause"
            is_equal = push.kind is PushKind.COMPARE and push.first <= 1
            code = DLedgerCode.SUCCESS if is_equal else DLedgerCode.INCONSISTENT_STATE
            leader.answer(push, code, 1)
    leader.state.now_ms += leader.state.timing.compare_retry_ms
    assert leader.pushes()


def test_entries_that_the_log_lost_are_compared_again() -> None:
    log = MemoryLog()
    for _ in range(20):
        log.write(1, b"x")
    leader = Leader(log)
    (compare,) = leader.pushes()
    leader.answer(compare, DLedgerCode.INCONSISTENT_STATE, 2)
    (compare,) = leader.pushes()
    leader.answer(compare, DLedgerCode.SUCCESS, 2)
    del log.entries[:10]
    (compare,) = leader.pushes()
    assert (compare.kind, compare.first) == (PushKind.COMPARE, 19)
    leader.answer(compare, DLedgerCode.INCONSISTENT_STATE, 2)
    (truncate,) = leader.pushes()
    assert (truncate.kind, truncate.first) == (PushKind.TRUNCATE, 10)

"""The sync-state set of a master: who counts, who joins and leaves, reports without an answer."""

from core_broker.ha.sync_states import UNKNOWN_MS, SyncStates


def states_of(*members: int) -> SyncStates:
    return SyncStates(1, 7, frozenset(members))


def test_all_members_must_have_a_message() -> None:
    states = states_of(1, 2, 3)
    assert states.confirmed({2: 90, 3: 80}, end=100, before=50) == 80
    assert states.confirmed({2: 90, 3: 40}, end=100, before=50) == 50, "it never decreases"
    assert states.confirmed({2: 90}, end=100, before=50) == 50, "3 may be elected"
    assert states.confirmed({2: 90, 3: 80, 4: 10}, end=100, before=50) == 80
    assert states_of(1).is_alone
    assert states_of(1).confirmed({2: 10}, end=100, before=50) == 100


def test_a_joining_broker_counts_from_before_the_report_on() -> None:
    states = states_of(1)
    states.begin_join(2, needed=100)
    assert not states.is_alone
    assert states.confirmed({2: 60}, end=120, before=100) == 100
    states.acknowledged(2, 99)
    assert not states.must_report
    states.acknowledged(2, 100)
    assert states.must_report
    assert states.begin_report() == {1, 2}
    assert not states.must_report, "one report at a time"
    states.drop_join(2)
    assert states.counted == {1, 2}, "the report may be accepted"
    assert states.adopt(8, frozenset({1, 2}))
    assert states.members == {1, 2}
    assert not states.must_report


def test_a_join_that_fails_ends() -> None:
    states = states_of(1)
    states.begin_join(2, needed=100)
    states.drop_join(2)
    assert states.is_alone
    states.begin_join(2, needed=100)
    states.acknowledged(2, 100)
    states.begin_report()
    states.refused()
    assert states.is_alone
    assert not states.must_report


def test_a_lost_member_counts_until_the_smaller_set_is_accepted() -> None:
    states = states_of(1, 2, 3)
    states.leave(3)
    states.leave(1)
    assert states.wanted == {1, 2}, "the master stays"
    assert states.counted == {1, 2, 3}
    assert states.size == 3
    assert states.begin_report() == {1, 2}
    states.adopt(8, frozenset({1, 2}))
    assert states.counted == {1, 2}
    states.leave(2)
    assert states.is_leaving(2)
    states.stay(2)
    assert not states.must_report


def test_a_report_without_an_answer_counts_until_the_set_changes() -> None:
    states = states_of(1)
    states.begin_join(2, needed=0)
    states.acknowledged(2, 0)
    states.begin_report()
    states.unknown(now_ms=1000)
    states.leave(2)
    assert states.counted == {1, 2}, "the controllers may elect 2"
    assert not states.adopt(7, frozenset({1})), "the same set proves nothing"
    assert not states.settle(7, 1000 + UNKNOWN_MS - 1), "a report may still be accepted"
    assert not states.settle(6, 1000 + UNKNOWN_MS), "an older answer proves nothing"
    assert not states.settle(8, 1000 + UNKNOWN_MS), "the report was accepted"
    assert states.counted == {1, 2}
    assert states.settle(7, 1000 + UNKNOWN_MS)
    assert states.is_alone
    assert not states.settle(7, 1000 + UNKNOWN_MS)


def test_a_newer_set_settles_what_was_unknown() -> None:
    states = states_of(1)
    states.begin_join(2, needed=0)
    states.acknowledged(2, 0)
    states.begin_report()
    states.unknown(now_ms=0)
    assert states.must_report, "2 still wants to join"
    assert states.adopt(8, frozenset({1, 3}))
    assert states.counted == {1, 2, 3}
    assert states.wanted == {1, 2, 3}
    states.drop_join(2)
    assert states.counted == {1, 3}

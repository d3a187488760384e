"""state/half_progress.py: the progress of transaction checks, and the decisions."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.state import half_progress
from core_broker.state.half_progress import CheckRules, HalfProgress, Verdict, judge
from tests.support.stored_messages import stored

RULES = CheckRules(timeout_ms=6_000, check_max=15, reserved_ms=72 * 3_600_000)
NOW = 1_700_000_000_000
ROUND = NOW - 10


def verdict(
    age_ms: int, properties: dict[str, str] | None = None, stored_ms: int = NOW - 1_000
) -> Verdict:
    half = replace(
        stored(0, 0, stored_ms),
        born_timestamp=NOW - age_ms,
        properties=properties or {},
    )
    return judge(half, NOW, ROUND, RULES)


class TestVerdicts:
    @pytest.mark.parametrize(
        ("age_ms", "expected"),
        [
            (0, Verdict.WAIT),
            (5_999, Verdict.WAIT),
            (6_000, Verdict.CHECK),
            (72 * 3_600_000, Verdict.CHECK),
            (72 * 3_600_000 + 1, Verdict.DISCARD),
            (-1, Verdict.CHECK),
            (-(10**12), Verdict.CHECK),
        ],
    )
    def test_by_age(self, age_ms: int, expected: Verdict) -> None:
        assert verdict(age_ms) is expected

    def test_copies_of_the_current_round_wait(self) -> None:
        assert verdict(10_000, stored_ms=ROUND) is Verdict.WAIT
        assert verdict(10_000, stored_ms=ROUND - 1) is Verdict.CHECK

    @pytest.mark.parametrize(
        ("times", "expected"),
        [
            ("14", Verdict.CHECK),
            ("15", Verdict.DISCARD),
            ("99999", Verdict.DISCARD),
            ("-1", Verdict.CHECK),
            ("x", Verdict.CHECK),
            ("9" * 100, Verdict.CHECK),
        ],
    )
    def test_by_checks(self, times: str, expected: Verdict) -> None:
        assert verdict(10_000, {"TRANSACTION_CHECK_TIMES": times}) is expected

    @pytest.mark.parametrize(
        ("seconds", "age_ms", "expected"),
        [
            ("100", 99_999, Verdict.IMMUNE),
            ("100", 100_000, Verdict.CHECK),
            ("1", 1_000, Verdict.CHECK),
            ("0", 0, Verdict.CHECK),
            ("x", 5_999, Verdict.WAIT),
            ("x", 6_000, Verdict.CHECK),
            ("-7", 5_999, Verdict.WAIT),
            ("9" * 18, 72 * 3_600_000, Verdict.IMMUNE),
            ("9" * 18, 72 * 3_600_001, Verdict.DISCARD),
        ],
    )
    def test_by_immunity(self, seconds: str, age_ms: int, expected: Verdict) -> None:
        assert verdict(age_ms, {"CHECK_IMMUNITY_TIME_IN_SECONDS": seconds}) is expected


class TestLedger:
    def test_op_messages_settle(self) -> None:
        progress = HalfProgress(10, 0)
        progress.read_op([12], 20)
        progress.read_op([9, 10], 20)
        assert [each for each in range(9, 15) if progress.is_settled(each)] == [9, 10, 12]
        assert (progress.next_op, progress.needed_op) == (2, 0)
        progress.pass_to(13)
        assert (progress.next_half, progress.needed_op) == (13, 2)

    def test_offsets_outside_of_the_queue_are_ignored(self) -> None:
        progress = HalfProgress(0, 0)
        progress.read_op([20, 10**18, -1], 20)
        assert not progress.is_settled(20)
        assert progress.needed_op == 1

    def test_an_op_message_for_the_old_offset_settles_the_copy(self) -> None:
        progress = HalfProgress(0, 0)
        progress.read_op([0], 9, moved_to=5)
        assert [each for each in range(9) if progress.is_settled(each)] == [0]
        progress.pass_to(1)
        progress.read_op([5], 9, moved_to=8)
        progress.pass_to(6)
        assert not progress.is_settled(8)
        progress.read_op([0], 9)
        assert progress.is_settled(8)
        assert progress.needed_op == 0
        progress.pass_to(9)
        assert progress.needed_op == 3

    @pytest.mark.parametrize("place", [-1, 0, 3, 20, 10**18])
    def test_no_half_message_moves_backwards_or_out_of_the_queue(self, place: int) -> None:
        progress = HalfProgress(0, 0)
        progress.read_op([3], 20, moved_to=place)
        assert not any(progress.is_settled(each) for each in range(20))

    def test_old_places_are_forgotten_at_last(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(half_progress, "MOVED_MAX", 2)
        progress = HalfProgress(0, 0)
        for half in range(3):
            progress.read_op([half], 20, moved_to=half + 10)
        progress.pass_to(3)
        progress.read_op([0, 1, 2], 20)
        assert [each for each in range(3, 20) if progress.is_settled(each)] == [11, 12]

    def test_expired_messages_are_skipped(self) -> None:
        progress = HalfProgress(0, 0)
        progress.read_op([3], 10)
        progress.begin_at(5, 7)
        assert (progress.next_half, progress.next_op, progress.needed_op) == (5, 7, 7)
        progress.begin_at(2, 2)
        assert (progress.next_half, progress.next_op) == (5, 7)

    @given(
        ops=st.lists(st.tuples(st.integers(0, 40), st.none() | st.integers(0, 40)), max_size=60),
        steps=st.lists(st.integers(0, 40), max_size=10),
    )
    def test_a_restart_restores_the_progress(
        self, ops: list[tuple[int, int | None]], steps: list[int]
    ) -> None:
        """Op messages read again from the saved offsets settle the same half messages."""
        progress = HalfProgress(0, 0)
        passes = sorted(steps)
        for number, (half, place) in enumerate(ops):
            progress.read_op([half], 41, place)
            if passes and number % 7 == 6:
                progress.pass_to(max(passes.pop(0), progress.next_half))
        again = HalfProgress(progress.next_half, progress.needed_op)
        for half, place in ops[again.next_op :]:
            again.read_op([half], 41, place)
        assert again.next_op == progress.next_op
        for half in range(41):
            # Without a restart, more moved half messages may be known as ended.
            assert again.is_settled(half) <= progress.is_settled(half)
            if not any(place is not None for _, place in ops):
                assert again.is_settled(half) == progress.is_settled(half)

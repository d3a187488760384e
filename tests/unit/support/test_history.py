"""The history checker finds each kind of wrong, and nothing in what is right."""

from tests.support.history import Found, History

Q = ("T", 0)


def sent(*numbers: int) -> History:
    """Numbers sent and acknowledged one after the other, at offsets from 0 on."""
    history = History()
    for offset, number in enumerate(numbers):
        history.begin(number, Q, b"%d" % number)
        history.stored(number, offset, (100 * offset, 100 * offset + 100))
    return history


def found(*numbers: int, first: int = 0) -> dict[tuple[str, int], list[Found]]:
    """These messages at offsets without a gap."""
    return {Q: [Found(at, each, b"%d" % each) for at, each in enumerate(numbers, first)]}


def test_what_was_acknowledged_and_is_there_is_clean() -> None:
    assert sent(1, 2, 3).check(found(1, 2, 3)).is_clean


def test_what_was_acknowledged_must_be_there() -> None:
    assert sent(1, 2).check(found(1)).lost == ["2 of ('T', 0) at 1"]


def test_what_was_not_acknowledged_may_be_there_or_not() -> None:
    history = sent(1)
    history.begin(2, Q, b"2")
    history.begin(3, Q, b"3")
    verdict = history.check(found(1, 3))
    assert (verdict.is_clean, verdict.unknown_found, verdict.unknown_absent) == (True, 1, 1)
    # But once it was read it stays.
    assert history.check(found(1)).lost == ["3 of ('T', 0) at 1"]


def test_what_nobody_sent_must_not_be_there() -> None:
    assert sent(1).check(found(1, 9)).invented == ["9 at 1 of ('T', 0)"]


def test_content_and_place_must_be_those_that_were_said() -> None:
    assert sent(1).check({Q: [Found(0, 1, b"other")]}).altered
    assert sent(1, 2).check(found(2, 1)).altered


def test_an_offset_is_given_once() -> None:
    history = sent(1)
    history.begin(2, Q, b"2")
    history.stored(2, 0)
    assert history.check(found(1)).altered == ["('T', 0) offset 0 for 1 and 2"]


def test_a_message_is_there_once() -> None:
    history = sent(1)
    assert history.check(found(1, 1)).duplicates == ["1 at 1 of ('T', 0)"]


def test_offsets_have_no_gap() -> None:
    history = sent(1)
    history.begin(2, Q, b"2")
    verdict = history.check({Q: [Found(0, 1, b"1"), Found(2, 2, b"2")]})
    assert verdict.gaps == ["('T', 0) offset 1"]


def test_a_message_sent_after_the_answer_to_another_is_stored_behind_it() -> None:
    history = sent(1)
    history.begin(2, Q, b"2")
    # Another message was put before the first one: its offset says so.
    assert history.check({Q: [Found(0, 2, b"2"), Found(1, 1, b"1")]}).reordered


def test_a_power_cut_takes_back_what_was_not_synced() -> None:
    history = sent(1, 2)
    history.synced(1)
    history.power_cut()
    assert history.check(found(1)).is_clean
    assert history.check({}).lost == ["1 of ('T', 0) at 0"]


def test_what_a_power_cut_takes_is_a_tail() -> None:
    history = sent(1, 2)
    history.power_cut()
    verdict = history.check({Q: []}, log_end=150)
    assert len(verdict.holes) == 1


def test_what_the_test_damaged_may_be_missing() -> None:
    history = sent(1, 2)
    history.damaged(1)
    assert history.check({Q: [Found(1, 2, b"2")]}).is_clean

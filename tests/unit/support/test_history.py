"""The history checker reports each kind of violation, and none for a correct history."""

from tests.support.history import Found, History

Q = ("T", 0)


def sent(*numbers: int) -> History:
    """A history of numbers, sent and acknowledged sequentially at offsets from 0 on."""
    history = History()
    for offset, number in enumerate(numbers):
        history.begin(number, Q, b"%d" % number)
        history.stored(number, offset, (100 * offset, 100 * offset + 100))
    return history


def found(*numbers: int, first: int = 0) -> dict[tuple[str, int], list[Found]]:
    """Messages with the numbers as bodies, at offsets without a gap."""
    return {Q: [Found(at, each, b"%d" % each) for at, each in enumerate(numbers, first)]}


def test_stored_acknowledged_messages_are_clean() -> None:
    assert sent(1, 2, 3).check(found(1, 2, 3)).is_clean


def test_a_missing_acknowledged_message_is_lost() -> None:
    assert sent(1, 2).check(found(1)).lost == ["2 of ('T', 0) at 1"]


def test_an_unacknowledged_message_may_be_stored_or_missing() -> None:
    history = sent(1)
    history.begin(2, Q, b"2")
    history.begin(3, Q, b"3")
    verdict = history.check(found(1, 3))
    assert (verdict.is_clean, verdict.unknown_found, verdict.unknown_absent) == (True, 1, 1)
    # After a read of the message, the message must stay.
    assert history.check(found(1)).lost == ["3 of ('T', 0) at 1"]


def test_a_message_without_a_send_is_invented() -> None:
    assert sent(1).check(found(1, 9)).invented == ["9 at 1 of ('T', 0)"]


def test_another_body_or_offset_is_altered() -> None:
    assert sent(1).check({Q: [Found(0, 1, b"other")]}).altered
    assert sent(1, 2).check(found(2, 1)).altered


def test_an_offset_is_assigned_once() -> None:
    history = sent(1)
    history.begin(2, Q, b"2")
    history.stored(2, 0)
    assert history.check(found(1)).altered == ["('T', 0) offset 0 for 1 and 2"]


def test_a_message_at_two_offsets_is_a_duplicate() -> None:
    history = sent(1)
    assert history.check(found(1, 1)).duplicates == ["1 at 1 of ('T', 0)"]


def test_offsets_have_no_gap() -> None:
    history = sent(1)
    history.begin(2, Q, b"2")
    verdict = history.check({Q: [Found(0, 1, b"1"), Found(2, 2, b"2")]})
    assert verdict.gaps == ["('T', 0) offset 1"]


def test_a_message_sent_after_the_answer_to_another_has_a_higher_offset() -> None:
    history = sent(1)
    history.begin(2, Q, b"2")
    # Message 2 has the lower offset, although its send began after the answer to message 1.
    assert history.check({Q: [Found(0, 2, b"2"), Found(1, 1, b"1")]}).reordered


def test_a_power_cut_may_lose_unsynced_messages() -> None:
    history = sent(1, 2)
    history.synced(1)
    history.power_cut()
    assert history.check(found(1)).is_clean
    assert history.check({}).lost == ["1 of ('T', 0) at 0"]


def test_a_power_cut_loses_only_a_tail() -> None:
    history = sent(1, 2)
    history.power_cut()
    verdict = history.check({Q: []}, log_end=150)
    assert len(verdict.holes) == 1


def test_a_damaged_message_may_be_missing() -> None:
    history = sent(1, 2)
    history.damaged(1)
    assert history.check({Q: [Found(1, 2, b"2")]}).is_clean

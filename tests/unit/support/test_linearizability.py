"""The checker of histories against histories with a known verdict."""

import pytest

from tests.support.linearizability import NEVER, Operation, check_history


def write(value: str, called: int, returned: int = NEVER) -> Operation:
    answer = "" if returned < NEVER else None
    return Operation("x", "write", called, value, returned=returned, answer=answer)


def read(value: str, called: int, returned: int) -> Operation:
    return Operation("x", "read", called, returned=returned, answer=value)


def swap(expected: str, value: str, called: int, returned: int, answer: bool) -> Operation:
    return Operation("x", "swap", called, value, expected, returned, str(answer))


@pytest.mark.parametrize(
    "history",
    [
        [],
        [write("1", 1, 2), read("1", 3, 4)],
        [write("1", 1, 4), read("", 2, 3), read("1", 5, 6)],
        [write("1", 1, 6), write("2", 2, 5), read("2", 3, 4), read("1", 7, 8)],
        [write("1", 1), read("", 2, 3), read("1", 4, 5)],
        [write("1", 1, 2), swap("1", "2", 3, 4, True), swap("1", "3", 5, 6, False)],
    ],
)
def test_histories_with_an_order(history: list[Operation]) -> None:
    assert check_history(history) is None


@pytest.mark.parametrize(
    "history",
    [
        [write("1", 1, 2), read("", 3, 4)],
        [write("1", 1, 2), write("2", 3, 4), read("1", 5, 6)],
        [write("1", 1), read("1", 2, 3), read("", 4, 5)],
        [write("1", 1, 2), swap("1", "2", 3, 4, True), swap("1", "3", 5, 6, True)],
        [read("9", 1, 2)],
    ],
)
def test_histories_without_an_order(history: list[Operation]) -> None:
    problem = check_history(history)
    assert problem is not None
    assert "history of x" in problem


def test_keys_are_independent() -> None:
    other = Operation("y", "read", 3, returned=4, answer="")
    assert check_history([write("1", 1, 2), other]) is None


def test_an_endless_search_is_no_success() -> None:
    history = [write(str(number), number) for number in range(1, 30)]
    history.append(read("none", 100, 101))
    with pytest.raises(AssertionError, match="STATES_MAX"):
        check_history(history)

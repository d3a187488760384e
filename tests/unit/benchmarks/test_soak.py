"""The soak notices visitors that get no more answers."""

from collections import Counter

from benchmarks.soak import PAGES, STEADY, without_answers


def test_a_visitor_without_new_answers_is_named() -> None:
    before = Counter(dict.fromkeys(STEADY, 3))
    after = before + Counter({"overview": 1})
    assert without_answers(before, after) == [PAGES]
    assert without_answers(before, after + Counter({PAGES: 1})) == []
    assert without_answers(Counter(), Counter()) == list(STEADY)

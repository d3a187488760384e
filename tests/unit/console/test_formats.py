"""Formats of numbers, sizes, times and permissions."""

import pytest
from django.utils import translation

from console.frame import formats
from console.gateway.topics.permission import perm_words

NOW = 1_800_000_000_000


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "—"), (0, "0"), (12345, "12,345"), (-3, "-3"), (1.5, "2")],
)
def test_number(value: float | None, text: str) -> None:
    assert formats.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "—"),
        (0, "0"),
        (9999, "9,999"),
        (12_345, "12.3k"),
        (999_900, "1,000k"),
        (1_234_567, "1.23M"),
        (12_000_000_000, "12G"),
        (0.25, "0.2"),
    ],
)
def test_compact(value: float | None, text: str) -> None:
    assert formats.compact(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "—"),
        (0.0, "0"),
        (0.004, "0"),
        (0.5, "0.5"),
        (9.876, "9.88"),
        (45.04, "45.0"),
        (1234.5, "1,234"),
    ],
)
def test_rate(value: float | None, text: str) -> None:
    assert formats.rate(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "—"), (0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 * 1024**4, "3.0 TiB")],
)
def test_size(value: float | None, text: str) -> None:
    assert formats.size(value) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (None, "—"),
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1 s"),
        (61_000, "1 min 1 s"),
        (3_600_000, "1 h"),
        (90_000_000, "1 d 1 h"),
    ],
)
def test_duration(ms: float | None, text: str) -> None:
    assert formats.duration(ms) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (None, "—"),
        (999, "999 ms"),
        (1000, "1.0 s"),
        (1598.4, "1.6 s"),
        (59_949, "59.9 s"),
        (59_999, "59 s"),
        (61_000, "1 min 1 s"),
    ],
)
def test_latency(ms: float | None, text: str) -> None:
    assert formats.latency(ms) == text


@pytest.mark.parametrize(
    ("then", "text"),
    [
        (None, "—"),
        (NOW, "just now"),
        (NOW - 1_999, "just now"),
        (NOW + 1_999, "just now"),
        (NOW - 59_000, "59 s ago"),
        (NOW - 3_599_000, "59 min ago"),
        (NOW - 86_400_000, "1 d ago"),
        (NOW + 120_000, "in 2 min"),
    ],
)
def test_ago(then: int | None, text: str) -> None:
    assert formats.ago(then, NOW) == text


def test_exact_has_milliseconds_and_a_zone() -> None:
    assert formats.exact(1_795_251_227_608) == "2026-11-21 08:53:47.608 UTC"
    assert formats.exact(None) == "—"


@pytest.mark.parametrize("ms", [10**20, -(10**20)])
def test_a_time_beyond_the_calendar_is_shown_as_it_is(ms: int) -> None:
    assert formats.exact(ms) == str(ms)


@pytest.mark.parametrize(
    ("perm", "words"),
    [
        (0, "no access"),
        (1, "no access, inheritable"),
        (2, "write only"),
        (3, "write only, inheritable"),
        (4, "read only"),
        (5, "read only, inheritable"),
        (6, "read + write"),
        (7, "read + write, inheritable"),
        (14, "read + write"),
    ],
)
def test_permissions_in_words(perm: int, words: str) -> None:
    found = perm_words(perm)
    assert found is not None
    assert (found.number, found.words) == (perm, words)
    assert found.meaning


def test_an_unknown_permission_has_no_words() -> None:
    assert perm_words(None) is None


def test_words_follow_the_language() -> None:
    with translation.override("zh-hans"):
        found = perm_words(2)
        assert found is not None
        assert found.words != "write only"

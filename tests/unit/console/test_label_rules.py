"""Which labels can be stored."""

import pytest
from django.core.exceptions import ValidationError

from console.resources.labels import KEY_SHOWN_CHARS, LABELS_MAX, VALUE_CHARS_MAX, checked


def test_labels_are_returned_in_the_order_of_their_keys() -> None:
    given = {"team": "支付 👍", "a": "x" * VALUE_CHARS_MAX, "link.wiki_1-b": "https://w/?a=1&b=<c>"}
    assert list(checked(given)) == ["a", "link.wiki_1-b", "team"]
    assert checked(given) == given
    assert checked({}) == {}
    assert len(checked({f"k{number}": "v" for number in range(LABELS_MAX)})) == LABELS_MAX


@pytest.mark.parametrize(
    "key",
    [
        *("", "Owner", "1a", "-a", ".a", "_a", "a b", "a=b", "a:b", "ä", "a\n", "a\x00"),
        *("\ud800", "a" * 41, "owner\u200b", "__class__", 1, None),
    ],
)
def test_a_wrong_key_is_refused_with_a_text_that_can_be_shown(key: object) -> None:
    with pytest.raises(ValidationError) as told:
        checked({key: "value"})
    [text] = told.value.messages
    assert text.isascii()
    assert len(text) < 200 + KEY_SHOWN_CHARS


@pytest.mark.parametrize(
    "value",
    [
        *("", " ", " a", "a ", "a\n", "a\tb", "a\x00b", "\ud800", "x" * (VALUE_CHARS_MAX + 1)),
        # no-break and zero-width space, right-to-left override, soft hyphen, byte order mark, tag
        *(f"a{char}b" for char in "\u00a0\u200b\u202e\u00ad\ufeff\U000e0041"),
        # fillers of Hangul, blank of Braille, selector, joiner of graphemes, null notehead
        *(f"a{char}b" for char in "\u3164\uffa0\u115f\u2800\ufe0f\u034f\U0001d159"),
        *(1, None, True, ["a"], {"a": "b"}),
    ],
)
def test_a_wrong_value_is_refused(value: object) -> None:
    with pytest.raises(ValidationError) as told:
        checked({"owner": value})
    assert "visible characters" in told.value.messages[0]


def test_the_number_of_labels_is_bounded() -> None:
    with pytest.raises(ValidationError, match="At most 16 labels"):
        checked({f"k{number}": "v" for number in range(LABELS_MAX + 1)})

"""Changed fields of an audit row: only those, nested, long and bounded."""

from typing import Any

import pytest

from console.audit.changes import FIELDS_MAX, VALUE_CHARS_MAX, Value, changes_of


def text_of(value: Value | None) -> str | None:
    return None if value is None else value.text


def seen(before: Any, after: Any) -> dict[str, tuple[str | None, str | None]]:
    return {
        "/".join(each.path): (text_of(each.before), text_of(each.after))
        for each in changes_of(before, after).fields
    }


@pytest.mark.parametrize(
    ("before", "after", "fields"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, {"b": ("2", "3")}),
        ({"a": 1, "b": 2}, {"b": 3}, {"b": ("2", "3")}),
        ({"x": {"a": 1, "b": 2}}, {"x": {"b": 2}}, {"x/a": ("1", None)}),
        (None, {"a": True, "n": None, "x": {"b": ""}}, {"a": (None, "true"), "x/b": (None, '""')}),
        ({"a": "t"}, None, {"a": ("t", None)}),
        ({"l": ["a"]}, {"l": ["a", "b"]}, {"l": ('["a"]', '["a", "b"]')}),
        (
            {"l": [{"n": "a", "v": 1}]},
            {"l": [{"n": "a", "v": 2}, {"n": "b"}]},
            {"l/1/v": ("1", "2"), "l/2/n": (None, "b")},
        ),
        ({"a": {"b": 1}}, {"a": None}, {"a": ('{"b": 1}', "null")}),
        ({"cut_to_characters": 9, "text": "{"}, {"a": 1}, {}),
        ([1], {"a": 1}, {}),
        (None, None, {}),
    ],
)
def test_changed_fields(before: Any, after: Any, fields: dict[str, Any]) -> None:
    assert seen(before, after) == fields


def test_a_long_value_has_a_beginning_and_many_fields_are_cut() -> None:
    (field,) = changes_of({"a": ""}, {"a": "x" * 500}).fields
    assert field.after is not None
    assert (field.after.short, len(field.after.text)) == ("x" * VALUE_CHARS_MAX, 500)
    many = changes_of(None, {str(number): number for number in range(FIELDS_MAX + 1)})
    assert (len(many.fields), many.is_cut) == (FIELDS_MAX, True)

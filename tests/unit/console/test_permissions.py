"""Permissions: parsing, patterns, decisions, coverage."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.frame.permissions import (
    PERMISSIONS_MAX,
    Action,
    Scope,
    Target,
    UnusablePermission,
    first_allowing,
    not_covered,
    read_permission,
    read_permissions,
)
from console.gateway.patterns import fits

RESOURCES = ("topics", "groups")
WORDS = st.text(alphabet="ab*", max_size=8)
NAMES = st.text(alphabet="ab", max_size=8)


@pytest.mark.parametrize(
    "text",
    ["topics:read", "*:*", "groups:write:payment-*@local", "topics:admin@prod-*", "*:unmasked:a*b"],
)
def test_a_permission_prints_as_it_is_written(text: str) -> None:
    assert str(read_permission(text, RESOURCES)) == text


@pytest.mark.parametrize(
    "text",
    [
        "", "topics", "topics:", "topics:fly", "cows:read", "topics:read:", "topics:read@",
        "topics:read:a b", "topics:read:a\x00", "topics:read:" + "x" * 256,
        "topics:read:" + "*a" * 9, ":read", "topics:read:x@\n",
    ],
)  # fmt: skip
def test_an_unusable_permission_is_refused_with_a_short_reason(text: str) -> None:
    with pytest.raises(UnusablePermission) as refused:
        read_permission(text, RESOURCES)
    assert 0 < len(str(refused.value)) < 200
    assert "\x00" not in str(refused.value)


def test_the_number_of_permissions_is_bounded() -> None:
    lines = [f"topics:read:t{number}" for number in range(PERMISSIONS_MAX + 1)]
    assert len(read_permissions([*lines[1:], "", *lines[1:]])) == PERMISSIONS_MAX
    with pytest.raises(UnusablePermission):
        read_permissions(lines)


@given(WORDS, NAMES)
def test_a_pattern_fits_as_a_regular_expression_does(pattern: str, name: str) -> None:
    expected = re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name)
    assert fits(pattern, name) is (expected is not None)


@given(WORDS, WORDS, NAMES)
def test_what_covers_a_pattern_allows_its_names(wide: str, narrow: str, name: str) -> None:
    if not wide or not narrow:
        return
    held, wanted = (read_permission(f"topics:read:{names}") for names in (wide, narrow))
    if not not_covered([wanted], [held]) and fits(narrow, name):
        assert fits(wide, name)


@pytest.mark.parametrize(
    ("permission", "action", "target", "allowed"),
    [
        ("topics:read", Action.READ, Target("topics"), True),
        ("topics:read", Action.WRITE, Target("topics"), False),
        ("topics:admin", Action.WRITE, Target("topics"), True),
        ("topics:admin", Action.UNMASKED, Target("topics"), False),
        ("topics:unmasked", Action.READ, Target("topics"), False),
        ("*:*", Action.UNMASKED, Target("topics"), True),
        ("topics:read", Action.READ, Target("groups"), False),
        ("topics:read:a*", Action.READ, Target("topics", "local", "abc"), True),
        ("topics:read:a*", Action.READ, Target("topics", "local", "b"), False),
        ("topics:read:a*", Action.READ, Target("topics", "local"), False),
        ("topics:read:a*", Action.READ, Target("topics", "local", Scope.SOME), True),
        ("topics:read@prod", Action.READ, Target("topics", "local"), False),
        ("topics:read@prod", Action.READ, Target("topics"), False),
        ("topics:read@prod", Action.READ, Target("topics", Scope.SOME), True),
        ("topics:read", Action.READ, Target(""), False),
        ("*:read", Action.READ, Target(""), True),
    ],
)
def test_what_a_permission_allows(
    permission: str, action: Action, target: Target, allowed: bool
) -> None:
    held = [read_permission(permission)]
    assert (first_allowing(held, action, target) is not None) is allowed


def test_nothing_is_allowed_without_a_permission() -> None:
    assert first_allowing([], Action.READ, Target("topics", "local", "a")) is None

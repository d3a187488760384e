"""filter/tags.py: parsing and matching of tag subscriptions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.errors import ProtocolError
from core_broker.filter import matcher, parse_subscription
from core_broker.filter.tags import TAG_EXPRESSION_CHARS_MAX, tags_of
from core_broker.message.hashing import tags_code
from core_broker.remoting.bodies import SubscriptionData

TAGS = st.text(
    st.characters(blacklist_characters="| ", blacklist_categories=("Cs", "Z", "C")), min_size=1
)


def accepts(subscription: SubscriptionData, tag: str | None) -> bool:
    accept = matcher(subscription)
    return accept is None or accept(tags_code(tag))


@pytest.mark.parametrize("expression", [None, "", "  ", "*", " * "])
def test_all(expression: str | None) -> None:
    subscription = parse_subscription("T", expression, "TAG")
    assert subscription.sub_string == "*"
    assert matcher(subscription) is None
    assert accepts(subscription, None)


@pytest.mark.parametrize("expression_type", ["TAG", None, ""])
def test_some(expression_type: str | None) -> None:
    subscription = parse_subscription("T", "A || B", expression_type)
    assert subscription.tags_set == {"A", "B"}
    assert subscription.code_set == {65, 66}
    assert [accepts(subscription, tag) for tag in ("A", "B", "C", None)] == [
        True,
        True,
        False,
        False,
    ]


def test_blanks_and_empty_parts_do_not_count() -> None:
    assert tags_of("A||  B || ||A") == {"A", "B"}


@pytest.mark.parametrize("expression", ["||", " || || "])
def test_an_expression_without_tags_is_none(expression: str) -> None:
    with pytest.raises(ProtocolError, match="subString split error"):
        parse_subscription("T", expression, "TAG")


def test_other_languages_are_passed_on_unread() -> None:
    subscription = parse_subscription("T", "a > 1", "SQL92")
    assert (subscription.expression_type, subscription.sub_string) == ("SQL92", "a > 1")
    with pytest.raises(ProtocolError, match="can't be null"):
        parse_subscription("T", " ", "SQL92")


def test_the_wrong_codes_of_a_cpp_heartbeat_do_no_harm() -> None:
    heartbeat = SubscriptionData(topic="T", sub_string="A || B", tags_set={"A", "B"}, code_set={0})
    assert accepts(heartbeat, "A")
    assert not accepts(heartbeat, None)


def test_an_expression_is_enough_where_a_heartbeat_has_no_tags() -> None:
    assert accepts(SubscriptionData(topic="T", sub_string="A"), "A")
    assert not accepts(SubscriptionData(topic="T", sub_string="A"), "B")


@given(st.lists(TAGS, min_size=1))
def test_every_named_tag_is_wanted(tags: list[str]) -> None:
    subscription = parse_subscription("T", " || ".join(tags), "TAG")
    if subscription.sub_string != "*":
        assert subscription.tags_set == set(tags)
    assert all(accepts(subscription, tag) for tag in tags)


def test_the_length_of_an_expression_is_limited() -> None:
    expression = "t".ljust(TAG_EXPRESSION_CHARS_MAX, "x")
    assert parse_subscription("T", expression, "TAG").tags_set == {expression}
    with pytest.raises(ProtocolError, match=f"over {TAG_EXPRESSION_CHARS_MAX}"):
        parse_subscription("T", expression + "x", "TAG")

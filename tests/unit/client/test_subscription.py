"""Tag expressions, and the client's own comparison of tags."""

import pytest

from core_broker.client.subscription import build_subscription, matches_tags
from core_broker.errors import ClientError


@pytest.mark.parametrize("expression", ["*", "", "  "])
def test_everything(expression: str) -> None:
    subscription = build_subscription("T", expression, version=7)
    assert (subscription.sub_string, subscription.sub_version) == ("*", 7)
    assert not subscription.tags_set
    assert not subscription.code_set
    assert matches_tags(subscription, None)
    assert matches_tags(subscription, "any")


def test_tags_are_cut_at_double_bars_and_hashed_as_in_java() -> None:
    subscription = build_subscription("T", "TagA ||  TagB||", version=7)
    assert subscription.tags_set == {"TagA", "TagB"}
    assert subscription.code_set == {2598919, 2598920}
    assert subscription.sub_string == "TagA ||  TagB||"


def test_a_tag_with_the_same_hash_is_not_the_same_tag() -> None:
    subscription = build_subscription("T", "Aa", version=7)
    assert subscription.code_set == build_subscription("T", "BB", version=7).code_set
    assert matches_tags(subscription, "Aa")
    assert not matches_tags(subscription, "BB")
    assert not matches_tags(subscription, None)


def test_sql_is_left_to_the_broker() -> None:
    subscription = build_subscription("T", "a > 5", version=7, kind="SQL92")
    assert (subscription.expression_type, subscription.sub_string) == ("SQL92", "a > 5")
    assert matches_tags(subscription, None)


@pytest.mark.parametrize(("expression", "kind"), [("||", "TAG"), (" || ", "TAG"), (" ", "SQL92")])
def test_expressions_that_name_nothing_are_refused(expression: str, kind: str) -> None:
    with pytest.raises(ClientError):
        build_subscription("T", expression, version=7, kind=kind)

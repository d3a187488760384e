"""Message filters: the parts, and hostile input."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.gateway.messages.filters import BODY_CHARS_MAX, BodyTest, FilterError, MessageFilter
from core_broker.message import sysflag
from core_broker.message.model import MessageExt
from tests.support.stored_messages import stored

BODY = (
    b'{"order": {"total": 120.5, "items": [{"sku": "A-1"}, {"sku": "B-2"}], "paid": true}, '
    b'"a b": 1}'
)


def message(body: bytes = BODY, sys_flag: int = 0, **properties: str) -> MessageExt:
    found = stored(0, 0, 1_000)
    found.body, found.sys_flag, found.properties = body, sys_flag, properties
    return found


@pytest.mark.parametrize(
    ("wanted", "matches"),
    [
        (MessageFilter(), True),
        (MessageFilter(tags="red"), True),
        (MessageFilter(tags=" blue || red "), True),
        (MessageFilter(tags="blue"), False),
        (MessageFilter(tags="*"), True),
        (MessageFilter(sql="n > 4 AND colour = 'grey'"), True),
        (MessageFilter(sql="n > 5"), False),
        (MessageFilter(sql="missing > 5"), False),
        (MessageFilter(body="SKU"), True),
        (MessageFilter(body="120.5"), True),
        (MessageFilter(body="absent"), False),
        (MessageFilter(tags="red", body="absent"), False),
    ],
)
def test_the_parts_hold_all_together(wanted: MessageFilter, matches: bool) -> None:
    assert wanted.compiled()(message(TAGS="red", n="5", colour="grey")) is matches


@pytest.mark.parametrize(
    ("path", "matches"),
    [
        ("$.order", True),
        ("$.order.total > 100", True),
        ("$.order.total>=120.5", True),
        ("$.order.total < 100", False),
        ("$.order.total > '100'", False),
        ("$.order.items[1].sku = B-2", True),
        ('$.order.items[*].sku = "A-1"', True),
        ("$.order.items[9].sku", False),
        ("$['order'][\"paid\"] = true", True),
        ("$.order.paid = 1", False),
        ("$.order.paid != false", True),
        ("$['a b'] == 1", True),
        ("$.order.items ~ b-2", True),
        ("$.order.total.deeper", False),
    ],
)
def test_a_json_path_looks_into_the_body(path: str, matches: bool) -> None:
    assert MessageFilter(body=path, body_test=BodyTest.JSON).compiled()(message()) is matches


@pytest.mark.parametrize("body", [b"", b"no json", b"\xff\xfe", b"[" * 100_000, b"NaN", b"7"])
def test_a_body_that_is_no_such_json_does_not_match(body: bytes) -> None:
    test = MessageFilter(body="$.a > 1", body_test=BodyTest.JSON).compiled()
    assert not test(message(body))


def test_compressed_bodies_are_looked_into() -> None:
    packed = message(zlib.compress(BODY), sysflag.COMPRESSED)
    assert MessageFilter(body="B-2").compiled()(packed)
    bomb = message(zlib.compress(b"a" * 50_000_000), sysflag.COMPRESSED)
    assert not MessageFilter(body="aaaa").compiled()(bomb)


def test_a_regular_expression_takes_time_in_proportion_to_the_text() -> None:
    test = MessageFilter(body="(a+)+$", body_test=BodyTest.REGEX).compiled()
    # A backtracking engine would not terminate.
    assert not test(message(b"a" * 100_000 + b"!"))
    assert MessageFilter(body=r"sku.+B-\d", body_test=BodyTest.REGEX).compiled()(message())


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        (MessageFilter(tags="||"), "tags"),
        (MessageFilter(tags="x" * 300), "tags"),
        (MessageFilter(sql="a ="), "sql"),
        (MessageFilter(sql="x" * 3_000), "sql"),
        (MessageFilter(body="(", body_test=BodyTest.REGEX), "body"),
        (MessageFilter(body="(?<=a)b", body_test=BodyTest.REGEX), "body"),
        (MessageFilter(body="a{1000}{1000}", body_test=BodyTest.REGEX), "body"),
        (MessageFilter(body="order", body_test=BodyTest.JSON), "body"),
        (MessageFilter(body="$.a > ", body_test=BodyTest.JSON), "body"),
        (MessageFilter(body="$.a nonsense", body_test=BodyTest.JSON), "body"),
        (MessageFilter(body="$" + ".a" * 100, body_test=BodyTest.JSON), "body"),
        (MessageFilter(body="x" * (BODY_CHARS_MAX + 1)), "body"),
    ],
)
def test_what_cannot_be_used_names_its_part(wanted: MessageFilter, field: str) -> None:
    with pytest.raises(FilterError) as refused:
        wanted.compiled()
    assert refused.value.field == field
    assert str(refused.value.detail)


@given(st.text(max_size=60), st.sampled_from(list(BodyTest)), st.binary(max_size=60))
def test_any_text_is_a_filter_or_refused(text: str, test: BodyTest, body: bytes) -> None:
    wanted = MessageFilter(body=text, body_test=test)
    try:
        compiled = wanted.compiled()
    except FilterError:
        return
    assert compiled(message(body)) in {True, False}

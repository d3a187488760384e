"""Masks: expressions, bodies of every kind, topics of copies, and which questions take a mask."""

import json
import pkgutil
import zlib
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import console.gateway
from console.gateway.dead_letters.edits import Edit, checked
from console.gateway.engine.errors import Unusable
from console.gateway.engine.questions import Question
from console.gateway.messages import json_paths
from console.gateway.messages.masks import (
    HIDDEN,
    ORIGIN_PROPERTIES,
    Mask,
    MaskKind,
    MaskRule,
    check_expression,
    masked_text,
)
from core_broker.message import properties as names
from core_broker.message.model import NO_HOST, MessageExt
from core_broker.message.sysflag import COMPRESSED
from trace.codec import Pub, encode_trace

#: Questions of the console itself: their messages are shown to nobody, or masked by the caller.
OWN = {"messages.poll_tail", "dead_letters.read_range", "dead_letters.dead_letters_by_id"}
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["card", "a", "b"]), inner, max_size=3)
    ),
    max_leaves=12,
)


def rule(kind: str, expression: str = "", topic: str = "*") -> MaskRule:
    return MaskRule(topic, MaskKind(kind), expression)


def stored(topic: str, body: bytes = b"{}", **properties: str) -> MessageExt:
    return MessageExt(topic, body, properties, 0, 0, 0, 100, 0, 0, 1, NO_HOST, 2, NO_HOST, 0, 0, 7)


@pytest.mark.parametrize(
    ("kind", "expression", "body", "shown"),
    [
        ("json", "$.a.b", '{"a": {"b": 1, "c": 2.50}}', '{"a":{"b":"***","c":2.50}}'),
        ("json", "$.a", '{"a": 1, "a": {"x": 2}}', '{"a":"***","a":"***"}'),
        (
            "json",
            "$..card",
            '[{"card": 1}, {"x": {"card": [2]}}]',
            '[{"card":"***"},{"x":{"card":"***"}}]',
        ),
        ("json", "$.l[1]", '{"l": [1, 2]}', '{"l":[1,"***"]}'),
        ("json", "$[*].n", '[{"n": 1}, {"n": 2}]', '[{"n":"***"},{"n":"***"}]'),
        ("json", "$.card.*", '{"card": {"n": 1}, "a": 2}', '{"card":{"n":"***"},"a":2}'),
        ("json", "$.*.n", '{"x": {"n": 1}}', '{"x":{"n":"***"}}'),
        ("json", "$.*n", '{"*n": 1}', '{"*n":"***"}'),
        ("json", "$.missing", '{"a": 1}', '{"a": 1}'),
        ("json", "$.a", "4111", None),
        ("json", "$.a", '"4111"', None),
        ("json", "$.a", '{"a": NaN}', None),
        ("json", "$.a", "[" * 200 + "]" * 200, None),
        ("json", "$.a", "<card>4111</card>", None),
        ("regex", r"card=(\d+)", "card=4111&x=1", "card=***&x=1"),
        ("regex", r"\d{4}", "a 4111 b 4222", "a *** b ***"),
        ("regex", "4111", '{"a": "\\u0034111"}', '{"a":"***"}'),
        ("regex", '"a": (1)', '{"a": 1}', None),
        ("regex", '"a": (1)', '{"a": 1, "x": ["\\"a\\": 1"]}', None),
        ("regex", '"a": (1)|"b":(1)', '{"a": 1, "b": 1}', None),
        ("regex", '"a": (1)|"b":(2)', '{"a": 1, "b": 2}', None),
        ("regex", '"a": ?(1)', '{"a": 1, "b": 1}', '{"a":***,"b":1}'),
        ("regex", r"card=((\d{4})-[\d-]+)", "card=4111-2222-3333", "card=***"),
        ("regex", r"(?:(\d)x)?((\d)\d+)", "4111 5", "*** 5"),
        ("regex", "x*", "abc", "abc"),
        ("body", "", "anything", None),
    ],
)
def test_what_is_masked(kind: str, expression: str, body: str, shown: str | None) -> None:
    assert masked_text(body, [rule(kind, expression)]) == shown


def test_text_beside_json_needs_a_rule_for_text() -> None:
    both = [rule("json", "$.card"), rule("regex", r"\d{4}")]
    assert masked_text("plain 4111", both) == "plain ***"
    assert masked_text('{"card": 4111', both) is None, "looks like JSON, and is not"


@pytest.mark.parametrize(
    ("path", "pattern", "body", "shown"),
    [
        ("$.a", r'"card": (\d+)', '{"a": 1, "card": 4111}', None),
        ("$.a", r'"a":1,"card":(\d+)', '{"a": 1, "card": 4111}', None),
        ("$.a", r"\d{4}", '{"a": 4111, "b": 4222}', '{"a":"***","b":***}'),
    ],
)
def test_two_rules_do_not_unmask_one_another(
    path: str, pattern: str, body: str, shown: str | None
) -> None:
    assert masked_text(body, [rule("json", path), rule("regex", pattern)]) == shown


@pytest.mark.parametrize(
    ("hiding", "is_hidden"),
    [
        (rule("keys", topic="orders"), True),
        (rule("property", "TA*"), True),
        (rule("property", "x"), False),
    ],
)
@pytest.mark.parametrize("topic", ["RMQ_SYS_TRACE_TOPIC", "own-traces", "%DLQ%g"])
def test_keys_and_tags_are_hidden_in_trace_bodies(
    topic: str, hiding: MaskRule, is_hidden: bool
) -> None:
    body = encode_trace([Pub(timestamp_ms=1, group="g", topic="orders", msg_id="m", keys="k")])
    packed = replace(stored(topic, zlib.compress(body)), sys_flag=COMPRESSED)
    for message in (stored(topic, body), packed, stored(topic, b"x\x02" + body)):
        mask = Mask((hiding,))
        assert mask.hides_body(message) is is_hidden
        assert (mask.message(message).body == b"***") is is_hidden
    assert Mask((hiding,)).message(stored("orders", b"Pub")).body == b"Pub"
    assert Mask((hiding,), (("*",),)).message(packed) is packed


@given(DOCUMENTS)
def test_no_value_below_a_masked_name_is_left(document: Any) -> None:
    shown = masked_text(json.dumps({"top": document}), [rule("json", "$..card")])
    assert shown is not None
    values = json_paths.found(json.loads(shown), (json_paths.Deep("card"),))
    assert all(each == HIDDEN for each in values)


def test_a_path_that_would_mask_nothing_is_refused() -> None:
    check_expression(MaskKind.JSON, "$.card.*")
    with pytest.raises(ValueError, match="no step"):
        check_expression(MaskKind.JSON, "$..*")


@given(DOCUMENTS)
def test_a_document_is_written_as_it_was(document: Any) -> None:
    text = json.dumps(document)
    assert json.loads(json_paths.written(json_paths.parse(text))) == document


@pytest.mark.parametrize(
    ("topic", "properties", "is_hidden"),
    [
        ("orders", {}, True),
        ("other", {}, False),
        ("%DLQ%g", {names.PROPERTY_RETRY_TOPIC: "orders"}, True),
        ("%DLQ%g", {names.PROPERTY_DLQ_ORIGIN_TOPIC: "other"}, False),
        ("%DLQ%g", {}, True),
        ("SCHEDULE_TOPIC_XXXX", {names.PROPERTY_REAL_TOPIC: "orders"}, True),
        ("SCHEDULE_TOPIC_XXXX", {names.PROPERTY_REAL_TOPIC: "other"}, False),
        ("SCHEDULE_TOPIC_XXXX", {names.PROPERTY_REAL_TOPIC: "%RETRY%g"}, True),
        ("RMQ_SYS_TRACE_TOPIC", {}, True),
    ],
)
def test_copies_follow_the_original_topic(
    topic: str, properties: dict[str, str], is_hidden: bool
) -> None:
    message = stored(topic, **properties)
    assert bool(Mask((rule("body", topic="orders"),)).hiding(message)) is is_hidden


def test_what_a_reader_sees_unmasked() -> None:
    rules = (rule("keys"), rule("body"))
    letter = stored("%DLQ%g", b"x", KEYS="k", RETRY_TOPIC="orders")
    assert Mask(rules).message(letter).body == b"***"
    assert Mask(rules, (("orders",),)).message(letter) is letter
    assert Mask(rules, (("*",), ())).message(letter) is not letter, "a token limits its owner"
    assert Mask(rules, ((), ("*",))).keys_hidden("orders")
    assert not Mask(rules, (("ord*",),)).keys_hidden("orders")
    assert Mask(rules, (("orders",),)).keys_hidden("RMQ_SYS_TRACE_TOPIC")


def test_a_copy_that_the_reader_sees_does_not_keep_fields_hidden() -> None:
    letter = stored("%DLQ%g", RETRY_TOPIC="orders")
    mask = Mask((rule("body"),), (("open",),))
    assert mask.keeps_hidden(letter, "other")
    assert not mask.keeps_hidden(letter, "open")
    assert not Mask((rule("body", topic="orders"),)).keeps_hidden(letter, "other")
    assert mask.keeps_hidden(stored("open"), "open"), "nothing is hidden"


@pytest.mark.parametrize("name", ORIGIN_PROPERTIES)
def test_no_edit_names_another_original_topic(name: str) -> None:
    for edit in (Edit(properties=((name, "open"),)), Edit(removed=(name,))):
        with pytest.raises(Unusable):
            checked(edit)


def test_structural_properties_stay() -> None:
    shown = Mask((rule("property", "*"),)).message(stored("a", UNIQ_KEY="u", x="1", TAGS="t"))
    assert shown.properties == {"UNIQ_KEY": "u", "x": "***", "TAGS": "***"}


def test_a_masked_body_has_its_own_checksum() -> None:
    message = stored("a", b'{"card": 1}')
    assert Mask((rule("json", "$.card"),)).message(message).body_crc != message.body_crc


def test_every_question_that_returns_messages_takes_a_mask() -> None:
    found: dict[str, Question[Any, Any]] = {}
    for module in pkgutil.walk_packages(console.gateway.__path__, "console.gateway."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, Question):
                found[value.name] = value
    with_messages = {
        name
        for name, each in found.items()
        if any(
            word in str(each.run.__annotations__["return"])
            for word in ("Message", "LookupResult", "DeadLetterPage", "Delayed", "Tail", "Journey")
        )
    }
    unmasked = {name for name in with_messages if not found[name].takes_mask}
    assert unmasked == OWN

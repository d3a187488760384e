"""Signatures: known answers, the signed content, the fields that may be unsigned, and attacks."""

import hmac
import pickle
from base64 import b64encode
from hashlib import sha1

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from core_broker.auth.signature import SIGNATURE, SigningKey, signed_fields

SEND = {
    "AccessKey": "RocketMQ",
    "a": "PG",
    "b": "TopicTest",
    "c": "TBW102",
    "d": "4",
    "e": "0",
    "f": "0",
    "g": "1700000000000",
    "h": "0",
    "i": "KEYS\x01k1\x02TAGS\x01A\x02",
    "j": "0",
    "k": "false",
    "m": "false",
}
QUERY = {
    "AccessKey": "RocketMQ",
    "topic": "TopicTest",
    "key": "k1",
    "maxNum": "32",
    "beginTimestamp": "0",
    "endTimestamp": "9223372036854775807",
}
TEXTS = st.text(max_size=12)
FIELDS = st.dictionaries(st.text(min_size=1, max_size=8), TEXTS, max_size=6).filter(
    lambda fields: SIGNATURE not in fields
)


@pytest.mark.parametrize(
    ("secret", "fields", "body", "answer"),
    [
        ("12345678", {"AccessKey": "RocketMQ"}, b"", "IUc8rrO/0gDch8CjObLQsW2rsiA="),
        (
            "adiaushdiaushd",
            {"x": "Hello RocketMQ Client ACL Feature"},
            b"",
            "tAb/54Rwwcq+pbH8Loi7FWX4QSQ=",
        ),
        ("12345678", SEND, b"Hello RocketMQ", "k0SLncATM9EkWPMrIDZCIyJPuoU="),
        (
            "12345678",
            SEND | {"SecurityToken": "token-1"},
            b"Hello RocketMQ",
            "w9gyR9ZS8wW5XP5pnrgxLvVfCkQ=",
        ),
        ("12345678", QUERY, b"", "1b/Fxm1n2hN5LQKQAW4JtjPJLLk="),
        (
            "12345678",
            QUERY | {"_UNIQUE_KEY_QUERY": "true"},
            b"",
            "fjJEbdQYAofBoGBJDFmUOkzuibg=",
        ),
        (
            "12345678",
            {"AccessKey": "RocketMQ"},
            b'{"clientID":"c"}',
            "fZbXBt3b3Z99UlS1RSrWBReZV4U=",
        ),
        (
            "密钥1234567",
            {"AccessKey": "RocketMQ", "topic": "主题"},
            b"",
            "PJduGA2q48iqkpaLDC6+5WyXkH4=",
        ),
        ("sk", {"AccessKey": "ak", "OnsChannel": "ALIYUN", "topic": "T1"}, b"", None),
        ("", {"OnsChannel": "ALIYUN", "topic": "T1"}, b"", "LhzDrtB/k0z12a6eQehZG2eEYEA="),
    ],
)
def test_known_answers(
    secret: str, fields: dict[str, str], body: bytes, answer: str | None
) -> None:
    answer = answer or "muR8IZ3NQmnrdanSw1BasYcVCQg="
    key = SigningKey(secret)
    assert key.sign(signed_fields(fields), body) == answer
    assert key.accepts(fields | {SIGNATURE: answer}, body)
    assert not key.accepts(fields | {SIGNATURE: answer}, body + b"x")


def test_the_content_is_all_values_by_key_without_the_signature() -> None:
    fields = {"topic": "T1", "AccessKey": "ak", "OnsChannel": "ALIYUN", "Signature": "old"}
    assert signed_fields(fields) == b"akALIYUNT1"
    # A key beyond the first plane is a surrogate pair in Java and sorts before U+FFFD.
    assert signed_fields({"\ufffd": "2", "\U0001f600": "1"}) == b"12"
    # Java writes a surrogate without its partner as a question mark.
    assert signed_fields({"a": "\ud800", "\udfff": "x"}) == b"?x"


@given(secret=TEXTS, fields=FIELDS, body=st.binary(max_size=20))
def test_a_signature_equals_the_plain_formula(
    secret: str, fields: dict[str, str], body: bytes
) -> None:
    names = sorted(fields, key=lambda name: name.encode("utf-16-be"))
    content = "".join(fields[name] for name in names).encode() + body
    expected = b64encode(hmac.new(secret.encode(), content, sha1).digest()).decode()
    assert SigningKey(secret).sign(signed_fields(fields), body) == expected
    assert SigningKey(secret).accepts(fields | {SIGNATURE: expected}, memoryview(body))


@given(fields=FIELDS, body=st.binary(max_size=20), extra=st.tuples(TEXTS, TEXTS))
def test_an_added_field_with_a_value_is_refused(
    fields: dict[str, str], body: bytes, extra: tuple[str, str]
) -> None:
    name, value = extra
    assume(name not in fields and name != SIGNATURE and value)
    key = SigningKey("12345678")
    signed = fields | {SIGNATURE: key.sign(signed_fields(fields), body)}
    assert key.accepts(signed, body)
    assert not key.accepts(signed | {name: value}, body)


@pytest.mark.parametrize(
    "unsigned",
    [
        {"_UNIQUE_KEY_QUERY": "true"},
        {"__ZONE_NAME": "z1", "__ZONE_MODE": "true"},
        {"__ZONE_NAME": "z1"},
        {"SecurityToken": "token-1"},
    ],
)
def test_some_clients_add_known_fields_after_signing(unsigned: dict[str, str]) -> None:
    key = SigningKey("12345678")
    for signed in ({}, {"SecurityToken": "t"}, {"_UNIQUE_KEY_QUERY": "true"}):
        if signed.keys() & unsigned.keys():
            continue
        fields = QUERY | signed
        fields |= {SIGNATURE: key.sign(signed_fields(fields))} | unsigned
        assert key.accepts(fields, b"")
        assert not key.accepts(fields | {"maxNum": "33"}, b"")
        assert not key.accepts(fields | {"__ZONE": "z"}, b"")


@pytest.mark.parametrize(
    "presented",
    [
        "",
        "IUc8rrO/0gDch8CjObLQsW2rsiA",
        "IUc8rrO/0gDch8CjObLQsW2rsiA=\n",
        "主题",
        "\ud800",
        "=====",
    ],
)
def test_no_other_text_is_a_signature(presented: str) -> None:
    key = SigningKey("12345678")
    assert not key.accepts({"AccessKey": "RocketMQ", SIGNATURE: presented}, b"")
    assert not key.accepts({"AccessKey": "RocketMQ"}, b"")


def test_the_secret_shows_nowhere() -> None:
    key = SigningKey("very-secret")
    assert "very-secret" not in repr(key) + str(key)
    with pytest.raises(TypeError):
        pickle.dumps(key)

"""Masked fields of delayed and half messages, and of records in an own trace topic.

Brokers keep these messages in system topics; a property names the original topic.
"""

import json
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from core_broker.client import Producer
from core_broker.message.model import Message
from core_broker.message.properties import PROPERTY_DELAY_TIME_LEVEL
from tests.api.conftest import API, Api, browser
from tests.api.stored import routed_topic, store
from tests.api.test_masking import (
    BODY,
    CARD,
    PAGES,
    cleared,
    content,
    forms_of,
    masked_user,
    rule,
    topic,
)
from tests.api.test_pending import HOUR, begin_transaction
from tests.api.traffic import Traffic, poll
from trace.codec import Pub, encode_trace

__all__ = ["cleared", "masked_user", "topic"]


@pytest.fixture
def key() -> str:
    return f"customer-{uuid4().hex[:8]}"


def check_hidden(open_user: User, user: User, offset_msg_id: str, lists: tuple[str, ...]) -> None:
    """The list and the detail of a message: shown to one user, masked for the other."""
    pages = (f"{PAGES}/messages/{offset_msg_id}/", f"{API}/messages/{offset_msg_id}")
    for path in (*lists, *pages):
        shown, hidden = content(browser(open_user), path), content(browser(user), path)
        assert CARD in shown or path in lists, path
        assert CARD not in hidden, path


def test_a_delayed_message_follows_its_topic(
    masked_user: User, cleared: User, local: object, traffic: Traffic, topic: str, key: str
) -> None:
    rule("json", "$..card", topic)
    rule("keys", topic=topic)

    async def send() -> None:
        properties = {PROPERTY_DELAY_TIME_LEVEL: str(HOUR)}
        async with Producer("masked-delays", traffic.namesrv_addr) as producer:
            await producer.send(Message(topic, BODY, keys=(key,), properties=properties))

    traffic.run(send())
    listed = f"{API}/delayed-messages?topic={topic}"
    [message] = Api(cleared).client.get(listed).json()["items"]
    assert message["keys"] == [key]
    pages = (listed, f"{PAGES}/delayed/?topic={topic}")
    check_hidden(cleared, masked_user, message["offset_msg_id"], pages)
    for path in pages:
        assert key not in content(browser(masked_user), path), path
    found = f"{API}/delayed-messages?q={key}"
    assert not browser(masked_user).get(found).json()["items"], "a filter would confirm a guess"
    assert browser(cleared).get(found).json()["items"]


def test_a_half_message_follows_its_topic(
    masked_user: User, cleared: User, local: object, traffic: Traffic, topic: str, key: str
) -> None:
    rule("body", topic=topic)
    rule("keys", topic=topic)
    producer = begin_transaction(traffic, topic, f"tx-{uuid4().hex[:8]}", key)
    try:
        path = f"{API}/half-messages?q={topic}"
        [half] = poll(lambda: browser(cleared).get(path).json()["items"])
    finally:
        traffic.run(producer.stop())
    assert half["keys"] == [key]
    [hidden] = browser(masked_user).get(path).json()["items"]
    assert hidden["keys"] == ["***"]
    assert not browser(masked_user).get(f"{API}/half-messages?q={key}").json()["items"]
    page = f"{PAGES}/half-messages/?q={topic}"
    assert key in content(browser(cleared), page)
    assert key not in content(browser(masked_user), page)
    detail = f"{API}/messages/{half['offset_msg_id']}"
    assert browser(cleared).get(detail).json()["body"]["text"] == "half"
    assert browser(masked_user).get(detail).json()["body"]["text"] == "***"


@pytest.mark.parametrize("is_ruled", [True, False])
def test_an_own_trace_topic_follows_the_topics_of_its_records(
    masked_user: User,
    cleared: User,
    local: object,
    traffic: Traffic,
    topic: str,
    key: str,
    is_ruled: bool,
) -> None:
    """Producers may name a trace topic (`customizedTraceTopic`): only the body tells."""
    traces = routed_topic(traffic, "team-traces")
    rule("keys", topic=topic if is_ruled else "elsewhere")
    records = [Pub(timestamp_ms=1, group="g", topic=topic, msg_id="m", keys=key)]
    [sent] = store(traffic, Message(traces, encode_trace(records)))
    for user, is_shown in ((cleared, True), (masked_user, False)):
        read: Any = browser(user)
        listed = read.get(f"{API}/messages?topic={traces}").json()["items"]
        assert [each["masked"] for each in listed] == [not is_shown]
        for form in ("text", "hex", "base64"):
            one = json.dumps(read.get(f"{API}/messages/{sent.offset_msg_id}?form={form}").json())
            assert is_shown or not any(each in one for each in forms_of(key)), form
        raw = read.get(f"{API}/messages/{sent.offset_msg_id}/body")
        assert (key.encode() in raw.content) is is_shown
        assert bool(read.get(f"{API}/messages?topic={traces}&body={key}").json()["items"]) is (
            is_shown
        )

"""The message that a resend of a dead letter sends."""

from console.gateway.dead_letters.resend import (
    PROPERTY_RESENT_FROM,
    Target,
    message_to_resend,
    origin_topic,
)
from core_broker.message.model import MessageExt
from tests.support.stored_messages import stored

JOURNEY = {
    "RETRY_TOPIC": "orders",
    "ORIGIN_MESSAGE_ID": "A" * 32,
    "DELAY": "5",
    "REAL_TOPIC": "%DLQ%billing",
    "REAL_QID": "0",
    "WAIT": "false",
    "TIMER_DELAY_SEC": "10",
    "MIN_OFFSET": "0",
    "MAX_OFFSET": "3",
    "CLUSTER": "DefaultCluster",
    "UNIQ_KEY": "B" * 32,
    "KEYS": "order-1",
    "TAGS": "paid",
    "tenant": "acme",
}


def dead_letter(**properties: str) -> MessageExt:
    made = stored(0, 7, 0)
    made.topic, made.body = "%DLQ%billing", b"body"
    made.properties = {**JOURNEY, **properties}
    return made


def test_to_the_origin_goes_what_the_application_sent() -> None:
    letter = dead_letter()
    sent = message_to_resend(letter, "orders", Target.ORIGIN)
    assert (sent.topic, sent.body, sent.keys, sent.tags) == ("orders", b"body", ["order-1"], "paid")
    assert sent.properties["tenant"] == "acme"
    assert sent.properties["UNIQ_KEY"] == "B" * 32
    assert sent.properties[PROPERTY_RESENT_FROM] == letter.offset_msg_id
    for name in ("DELAY", "REAL_TOPIC", "RETRY_TOPIC", "MAX_OFFSET", "TIMER_DELAY_SEC"):
        assert name not in sent.properties


def test_to_the_retry_topic_goes_also_where_it_came_from() -> None:
    sent = message_to_resend(dead_letter(), "%RETRY%billing", Target.RETRY)
    assert sent.properties["RETRY_TOPIC"] == "orders"
    assert sent.properties["ORIGIN_MESSAGE_ID"] == "A" * 32


def test_a_letter_without_origin_says_so() -> None:
    letter = dead_letter()
    del letter.properties["RETRY_TOPIC"]
    assert origin_topic(letter) == ""
    letter.properties["DLQ_ORIGIN_TOPIC"] = "payments"
    assert origin_topic(letter) == "payments"

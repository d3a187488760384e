"""queryMsgById -s: the message that is sent again."""

from core_broker.message.model import MessageExt
from core_broker.mqadmin.queries import copy_to_resend

HOST = ("127.0.0.1", 1)


def test_a_resent_message_has_no_timer() -> None:
    """A store of RocketMQ 5 has messages with timer properties, which a Gantry broker refuses."""
    properties = {
        "KEYS": "k",
        "TAGS": "t",
        "TIMER_DELAY_SEC": "5",
        "TIMER_DELAY_MS": "5000",
        "TIMER_DELIVER_MS": "1700000000000",
    }
    stored = MessageExt("T", b"body", properties, 0, 0, 0, 0, 7, 0, 0, HOST, 0, HOST, 0, 0, 0)
    copy = copy_to_resend(stored)
    assert (copy.topic, copy.body, copy.flag) == ("T", b"body", 7)
    assert copy.properties == {"KEYS": "k", "TAGS": "t", "WAIT": "true"}

"""Requests about one stored message: the topic is that of the message, not a claim."""

import pytest

from core_broker.auth.acl1.demands import Mode as Mode1
from core_broker.auth.acl2.demands import Mode as Mode2
from core_broker.auth.contracts import STORED_ACTIONS, Refusal, Request, Rules
from core_broker.auth.gate import Gate
from core_broker.remoting.codes import RequestCode as Code
from tests.unit.auth import test_acl1_rules as acl1
from tests.unit.auth import test_acl2_rules as acl2

VIEW, BACK = Code.VIEW_MESSAGE_BY_ID, Code.CONSUMER_SEND_MSG_BACK
END, RESUME = Code.END_TRANSACTION, Code.RESUME_CHECK_HALF_MESSAGE
#: Code and topic of the message: whether PUB on P, SUB on S and SUB on group G suffice.
CASES = [
    (VIEW, "S", True),
    (VIEW, "P", False),
    (VIEW, "other", False),
    (VIEW, "%RETRY%G", True),
    (VIEW, "%RETRY%other", False),
    (BACK, "S", True),
    (BACK, "P", False),
    (BACK, "%RETRY%G", True),
    (END, "P", True),
    (END, "S", False),
    (RESUME, "P", False),
    (RESUME, "S", False),
]


def is_refused(rules: Rules, asked: Request, topic: str) -> bool:
    try:
        rules.check_stored("10.0.0.1", asked, topic)
    except Refusal as refusal:
        return refusal.reason == "no-permission" and bool(refusal.remark)
    return False


def test_every_code_has_a_case() -> None:
    assert {code for code, _, _ in CASES} == STORED_ACTIONS.keys()


@pytest.mark.parametrize(("code", "topic", "suffices"), CASES)
def test_the_topic_of_the_message_decides(code: Code, topic: str, suffices: bool) -> None:
    asked = acl1.signed("plain-1", code, topic="S")
    assert is_refused(acl1.rules(), asked, topic) is not suffices
    assert not is_refused(acl1.rules(Mode1.JAVA), asked, topic)
    assert not is_refused(acl1.rules(), acl1.signed("admin-1", code), topic)
    entries = [f"Custom Allow {what}" for what in ("Topic:P Pub", "Topic:S Sub", "Group:G Sub")]
    asked = acl2.signed(code, {"topic": "S"})
    assert is_refused(acl2.rules(*entries), asked, topic) is not suffices
    assert not is_refused(acl2.rules(*entries, mode=Mode2.JAVA), asked, topic)
    assert not is_refused(acl2.rules(*entries, is_authorizing=False), asked, topic)
    listed = acl2.rules(*entries, authorization_whitelist=frozenset({int(code)}))
    assert not is_refused(listed, asked, topic)
    root = acl2.signed(code, {}, "root", "secret-of-root")
    assert not is_refused(acl2.rules(), root, topic)


@pytest.mark.parametrize("listed", [frozenset(), frozenset({int(VIEW)})])
def test_an_unsigned_sender_is_refused(listed: frozenset[int]) -> None:
    with pytest.raises(Refusal):
        acl1.rules().check_stored("10.0.0.1", acl1.request(VIEW), "S")
    rules = acl2.rules("Custom Allow * All", authentication_whitelist=listed)
    with pytest.raises(Refusal):
        rules.check_stored("10.0.0.1", acl2.request(VIEW, {}), "S")


def test_both_generations_decide_and_observers_are_told() -> None:
    refused: list[str] = []

    class Observer:
        def refused(self, address: str, request: Request, refusal: Refusal) -> None:
            refused.append(refusal.resource)

    gate = Gate((Observer(),))
    gate.use_acl2(acl2.rules("Custom Allow Topic:S Sub"))
    gate.check_stored("10.0.0.1", acl2.signed(VIEW, {}), "S")
    with pytest.raises(Refusal):
        gate.check_stored("10.0.0.1", acl2.signed(VIEW, {}), "P")
    assert refused == ["Topic:P"]
    gate.use_acl1(acl1.rules())
    with pytest.raises(Refusal, match="No acl config for alice"):
        gate.check_stored("10.0.0.1", acl2.signed(VIEW, {}), "S")

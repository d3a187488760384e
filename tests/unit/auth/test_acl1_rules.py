"""Decisions of ACL 1.0: the order of checks, RocketMQ's texts, and each code's demand."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.auth.acl1.accounts import RETRY_PREFIX
from core_broker.auth.acl1.demands import ADMIN, SIGNED, Demand, Mode, Need, demand_of
from core_broker.auth.acl1.permissions import Perm
from core_broker.auth.acl1.reading import read_acl_file
from core_broker.auth.acl1.rules import Acl1Rules
from core_broker.auth.contracts import Action, Established, Refusal, Request, ResourceKind
from core_broker.auth.signature import SIGNATURE, SigningKey, signed_fields
from core_broker.errors import ProtocolError
from core_broker.remoting.bodies import (
    ConsumerData,
    HeartbeatData,
    LockBatchRequestBody,
    MessageQueue,
    ProducerData,
    SubscriptionData,
    encode_body,
)
from core_broker.remoting.codes import LanguageCode
from core_broker.remoting.codes import RequestCode as Code

FILE = """
globalWhiteRemoteAddresses: [10.9.9.*]
accounts:
- {accessKey: plain-1, secretKey: secret-of-plain-1, defaultTopicPerm: DENY,
   defaultGroupPerm: DENY, whiteRemoteAddress: 10.8.8.8,
   topicPerms: [P=PUB, S=SUB, PS=PUB|SUB, D=DENY], groupPerms: [G=SUB, GP=PUB, GD=DENY]}
- {accessKey: default-1, secretKey: secret-of-default-1, defaultTopicPerm: PUB|SUB,
   defaultGroupPerm: SUB, topicPerms: [D=DENY]}
- {accessKey: admin-1, secretKey: secret-of-admin-1, admin: true}
- {accessKey: admin-2, secretKey: secret-of-admin-2, admin: true, topicPerms: [P=PUB]}
"""
ADDRESS = "10.0.0.1"
PLACE = "org.apache.rocketmq.acl.plain.PlainPermissionManager"


def rules(mode: Mode = Mode.STRICT) -> Acl1Rules:
    file = read_acl_file("f", FILE, 0)
    accounts = {account.access_key: account for account in file.accounts}
    return Acl1Rules(1, mode, accounts, file.white_list)


def request(code: int, body: bytes = b"", **fields: str) -> Request:
    return Request(code, 399, LanguageCode.JAVA, fields, body)


def signed(
    access_key: str, code: int, body: bytes = b"", secret: str = "", **fields: str
) -> Request:
    fields["AccessKey"] = access_key
    key = SigningKey(secret or f"secret-of-{access_key}")
    return request(code, body, **fields, Signature=key.sign(signed_fields(fields), body))


def heartbeat(*groups: str, topic: str = "S") -> bytes:
    subscription = SubscriptionData(topic=topic)
    consumers = [
        ConsumerData(group_name=group, subscription_data_set=[subscription]) for group in groups
    ]
    producers = [ProducerData(group_name="any")]
    return encode_body(
        HeartbeatData(client_id="c", consumer_data_set=consumers, producer_data_set=producers)
    )


def locks(group: str, topic: str) -> bytes:
    queue = MessageQueue(topic=topic, broker_name="b", queue_id=0)
    return encode_body(LockBatchRequestBody(consumer_group=group, client_id="c", mq_set=[queue]))


def refusal(asked: Request, mode: Mode = Mode.STRICT, address: str = ADDRESS) -> Refusal:
    with pytest.raises(Refusal) as refused:
        rules(mode).admit(address, asked)
    assert refused.value.code == 1
    return refused.value


SEND: dict[str, Any] = {"code": Code.SEND_MESSAGE_V2, "b": "P"}


@pytest.mark.parametrize("address", ["10.9.9.1", "::ffff:10.9.9.200"])
def test_a_global_white_address_needs_no_key(address: str) -> None:
    identity = rules().admit(address, request(Code.UPDATE_BROKER_CONFIG))
    assert identity.how is Established.WHITE_LIST
    # A name that nobody proved is not the identity's name.
    forged = request(Code.UPDATE_BROKER_CONFIG, AccessKey="admin-1", Signature="x")
    assert rules().admit(address, forged).account == ""


def test_an_account_white_address_needs_the_name_only() -> None:
    asked = request(Code.UPDATE_BROKER_CONFIG, AccessKey="plain-1")
    identity = rules().admit("10.8.8.8", asked)
    assert (identity.account, identity.how) == ("plain-1", Established.ACCOUNT_WHITE_LIST)
    assert refusal(asked, address="10.8.8.9").reason == "bad-signature"
    other = request(Code.UPDATE_BROKER_CONFIG, AccessKey="admin-1")
    assert refusal(other, address="10.8.8.8").reason == "bad-signature"


@pytest.mark.parametrize(
    ("asked", "reason", "remark"),
    [
        (
            request(**SEND),
            "no-account",
            f"No accessKey is configured, {PLACE}.validate(PlainPermissionManager.java:664)",
        ),
        (
            request(**SEND, AccessKey="", Signature="x"),
            "no-account",
            f"No accessKey is configured, {PLACE}.validate(PlainPermissionManager.java:664)",
        ),
        (
            signed("nobody-1", **SEND),
            "unknown-account",
            f"No acl config for nobody-1, {PLACE}.validate(PlainPermissionManager.java:668)",
        ),
        (
            signed("plain-1", **SEND, secret="wrong-secret"),
            "bad-signature",
            "Check signature failed for accessKey=plain-1, "
            f"{PLACE}.validate(PlainPermissionManager.java:684)",
        ),
        (
            signed("plain-1", Code.UPDATE_BROKER_CONFIG),
            "admin-only",
            "Need admin permission for request code=25, but accessKey=plain-1 is not, "
            f"{PLACE}.checkPerm(PlainPermissionManager.java:581)",
        ),
        (
            signed("plain-1", Code.SEND_MESSAGE_V2, b="Other"),
            "no-permission",
            "No default permission for topic:Other, "
            f"{PLACE}.checkPerm(PlainPermissionManager.java:606)",
        ),
        (
            signed("plain-1", Code.SEND_MESSAGE_V2, b="D"),
            "no-permission",
            "No default permission for topic:D, "
            f"{PLACE}.checkPerm(PlainPermissionManager.java:611)",
        ),
        (
            signed("plain-1", Code.CONSUMER_SEND_MSG_BACK, group="GD"),
            "no-permission",
            "No default permission for group:GD, "
            f"{PLACE}.checkPerm(PlainPermissionManager.java:611)",
        ),
        (
            signed("plain-1", Code.HEART_BEAT, b"{"),
            "unreadable",
            "",
        ),
    ],
)
@pytest.mark.parametrize("mode", Mode)
def test_refusals_have_rocketmqs_text(asked: Request, reason: str, remark: str, mode: Mode) -> None:
    refused = refusal(asked, mode)
    assert refused.reason == reason
    if remark:
        assert refused.remark == "org.apache.rocketmq.acl.common.AclException: " + remark
    else:
        assert refused.remark.endswith("PlainAccessValidator.parse(PlainAccessValidator.java:134)")


#: Requests of plain-1 with the same decision in both modes: code, body, fields, decision.
ROWS: list[tuple[int, bytes, dict[str, str], bool]] = [
    (Code.SEND_MESSAGE, b"", {"topic": "P"}, True),
    (Code.SEND_MESSAGE, b"", {"topic": "PS"}, True),
    (Code.SEND_MESSAGE, b"", {"topic": "S"}, False),
    (Code.SEND_MESSAGE, b"", {"topic": "D"}, False),
    (Code.SEND_MESSAGE_V2, b"x", {"b": "P"}, True),
    (Code.SEND_MESSAGE_V2, b"x", {"b": "S"}, False),
    (Code.SEND_MESSAGE_V2, b"x", {"b": "RMQ_SYS_TRACE_TOPIC"}, True),
    (Code.SEND_MESSAGE_V2, b"x", {"b": "my_trace"}, False),
    (Code.SEND_MESSAGE_V2, b"x", {"b": "%DLQ%G"}, False),
    (Code.SEND_MESSAGE_V2, b"x", {"b": "%RETRY%G", "a": "G"}, True),
    (Code.SEND_MESSAGE_V2, b"x", {"b": "%RETRY%Other", "a": "Other"}, False),
    (Code.CONSUMER_SEND_MSG_BACK, b"", {"group": "G"}, True),
    (Code.CONSUMER_SEND_MSG_BACK, b"", {"group": "GP"}, False),
    (Code.CONSUMER_SEND_MSG_BACK, b"", {"group": "GD"}, False),
    (Code.PULL_MESSAGE, b"", {"topic": "S", "consumerGroup": "G"}, True),
    (Code.PULL_MESSAGE, b"", {"topic": "P", "consumerGroup": "G"}, False),
    (Code.PULL_MESSAGE, b"", {"topic": "S", "consumerGroup": "GD"}, False),
    (Code.PULL_MESSAGE, b"", {"topic": "%RETRY%G", "consumerGroup": "G"}, True),
    (Code.PULL_MESSAGE, b"", {"topic": "%RETRY%Other", "consumerGroup": "G"}, False),
    (Code.PULL_MESSAGE, b"", {"topic": "%DLQ%G", "consumerGroup": "G"}, False),
    (Code.PULL_MESSAGE, b"", {"topic": "RMQ_SYS_TRACE_TOPIC", "consumerGroup": "G"}, False),
    (Code.QUERY_MESSAGE, b"", {"topic": "S"}, True),
    (Code.QUERY_MESSAGE, b"", {"topic": "P"}, False),
    (Code.HEART_BEAT, heartbeat("G"), {}, True),
    (Code.HEART_BEAT, heartbeat("G", topic="%RETRY%G"), {}, True),
    (Code.HEART_BEAT, heartbeat(), {}, True),
    (Code.HEART_BEAT, heartbeat("G", "GD"), {}, False),
    (Code.HEART_BEAT, heartbeat("G", topic="P"), {}, False),
    (Code.UNREGISTER_CLIENT, b"", {"consumerGroup": "G"}, True),
    (Code.UNREGISTER_CLIENT, b"", {"producerGroup": "any"}, True),
    (Code.UNREGISTER_CLIENT, b"", {"consumerGroup": "GD"}, False),
    (Code.GET_CONSUMER_LIST_BY_GROUP, b"", {"consumerGroup": "G"}, True),
    (Code.GET_CONSUMER_LIST_BY_GROUP, b"", {"consumerGroup": "x"}, False),
    (Code.UPDATE_CONSUMER_OFFSET, b"", {"consumerGroup": "G", "topic": "S"}, True),
    (Code.UPDATE_CONSUMER_OFFSET, b"", {"consumerGroup": "G", "topic": "P"}, False),
    (Code.UPDATE_CONSUMER_OFFSET, b"", {"consumerGroup": "x", "topic": "S"}, False),
    *[(code, b"", {}, False) for code in (17, 25, 215, 200, 207, 50, 51, 53, 60004, 60005, 60006)],
    *[(code, b"", {}, True) for code in (21, 28, 37, 43, 45, 46, 52, 201, 204, 324, 325)],
]


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(("code", "body", "fields", "is_allowed"), ROWS)
def test_codes_need_the_same_in_both_modes(
    code: int, body: bytes, fields: dict[str, str], is_allowed: bool, mode: Mode
) -> None:
    check(signed("plain-1", code, body, **fields), is_allowed, mode)


#: Holes of RocketMQ 4.9.8 that the strict mode closes: allowed by signature alone in Java.
CLOSED: list[tuple[int, bytes, dict[str, str]]] = [
    (Code.SEND_BATCH_MESSAGE, b"", {"b": "S"}),
    (Code.SEND_MESSAGE_V2, b"", {"b": "%RETRY%Other", "a": "G"}),
    (Code.SEND_MESSAGE, b"", {"topic": "%RETRY%Other"}),
    (Code.SEND_MESSAGE_V2, b"", {}),
    (Code.PULL_MESSAGE, b"", {"topic": "S"}),
    (Code.PULL_MESSAGE, b"", {"consumerGroup": "G"}),
    (Code.LITE_PULL_MESSAGE, b"", {"topic": "P", "consumerGroup": "G"}),
    (Code.QUERY_CONSUMER_OFFSET, b"", {"consumerGroup": "x", "topic": "S"}),
    (Code.INVOKE_BROKER_TO_RESET_OFFSET, b"", {"group": "x", "topic": "S"}),
    (Code.CLONE_GROUP_OFFSET, b"", {"srcGroup": "G", "destGroup": "x", "topic": "S"}),
    (Code.SET_GROUP_OFFSETS, b"", {"group": "x", "topic": "S"}),
    (Code.LOCK_BATCH_MQ, locks("x", "S"), {}),
    (Code.LOCK_BATCH_MQ, locks("G", "P"), {}),
    (Code.UNLOCK_BATCH_MQ, locks("x", "S"), {}),
    (Code.GET_MAX_OFFSET, b"", {"topic": "Other"}),
    (Code.QUERY_CONSUME_QUEUE, b"", {"topic": "P"}),
    (Code.GET_CONSUMER_RUNNING_INFO, b"", {"consumerGroup": "x"}),
    *[(code, b"", {}) for code in (18, 26, 33, 225, 306, 309, 316, 323, 329, 401, 54, 77_777)],
]


@pytest.mark.parametrize(("code", "body", "fields"), CLOSED)
def test_the_strict_mode_closes_the_holes_of_java(
    code: int, body: bytes, fields: dict[str, str]
) -> None:
    asked = signed("plain-1", code, body, **fields)
    check(asked, False, Mode.STRICT)
    check(asked, True, Mode.JAVA)
    check(signed("admin-1", code, body, **fields), bool(fields or code > 15), Mode.JAVA)


@pytest.mark.parametrize(
    ("code", "body", "fields"),
    [
        (Code.SEND_BATCH_MESSAGE, b"", {"b": "P"}),
        (Code.SEND_BATCH_MESSAGE, b"", {"b": "RMQ_SYS_TRACE_TOPIC"}),
        (Code.SEND_MESSAGE_V2, b"", {"b": "%RETRY%G", "a": "CLIENT_INNER_PRODUCER"}),
        (Code.QUERY_CONSUMER_OFFSET, b"", {"consumerGroup": "G", "topic": "S"}),
        (Code.LOCK_BATCH_MQ, locks("G", "S"), {}),
        (Code.GET_MAX_OFFSET, b"", {"topic": "P"}),
        (Code.GET_MIN_OFFSET, b"", {"topic": "S"}),
        (Code.INVOKE_BROKER_TO_RESET_OFFSET, b"", {"group": "G", "topic": "S"}),
    ],
)
def test_the_strict_mode_lets_ordinary_clients_work(
    code: int, body: bytes, fields: dict[str, str]
) -> None:
    check(signed("plain-1", code, body, **fields), True, Mode.STRICT)


def check(asked: Request, is_allowed: bool, mode: Mode) -> None:
    if is_allowed:
        assert rules(mode).admit(ADDRESS, asked).how is Established.SIGNATURE
    else:
        assert refusal(asked, mode).reason in {"no-permission", "admin-only", "unreadable"}


def test_listed_permissions_come_before_defaults() -> None:
    check(signed("default-1", Code.SEND_MESSAGE, topic="Other"), True, Mode.JAVA)
    check(signed("default-1", Code.SEND_MESSAGE, topic="D"), False, Mode.JAVA)
    check(signed("default-1", Code.GET_CONSUMER_LIST_BY_GROUP, consumerGroup="x"), True, Mode.JAVA)


@pytest.mark.parametrize("mode", Mode)
def test_an_administrator_with_listed_permissions_is_restricted(mode: Mode) -> None:
    """As in 4.9.8."""
    check(signed("admin-1", Code.SEND_MESSAGE, topic="Other"), True, mode)
    check(signed("admin-1", Code.UPDATE_BROKER_CONFIG), True, mode)
    check(signed("admin-2", Code.UPDATE_BROKER_CONFIG), True, mode)
    check(signed("admin-2", Code.SEND_MESSAGE, topic="P"), True, mode)
    check(signed("admin-2", Code.SEND_MESSAGE, topic="Other"), False, mode)


NAMES = st.one_of(
    st.sampled_from(["P", "S", "PS", "D", "%RETRY%G", "%RETRY%GD", "RMQ_SYS_TRACE_TOPIC", ""]),
    st.text(max_size=5),
)


@given(name=NAMES, action=st.sampled_from([Action.PUB, Action.SUB]), mode=st.sampled_from(Mode))
def test_questions_about_topics_agree_with_requests(name: str, action: Action, mode: Mode) -> None:
    """The fast path asks `may`, the slow path `admit`; both have the same answer."""
    for account in ("plain-1", "default-1", "admin-1", "admin-2"):
        if action is Action.PUB:
            asked = signed(account, Code.SEND_MESSAGE, topic=name, group=name[len(RETRY_PREFIX) :])
        else:
            asked = signed(account, Code.QUERY_MESSAGE, topic=name)
        if not name:
            continue
        try:
            identity = rules(mode).admit(ADDRESS, asked)
            expected = ""
        except Refusal as refused:
            identity = rules(mode).identify(ADDRESS, asked)
            expected = refused.remark
        decision = rules(mode).may(identity, ADDRESS, ResourceKind.TOPIC, name, action)
        assert (decision.is_allowed, decision.remark) == (not expected, expected)


@pytest.mark.parametrize(
    ("account", "address", "kind", "name", "action", "is_allowed", "rule"),
    [
        ("plain-1", ADDRESS, "Topic", "P", "Pub", True, "topicPerms: P=PUB"),
        ("plain-1", ADDRESS, "Topic", "D", "Pub", False, "topicPerms: D=DENY"),
        ("plain-1", ADDRESS, "Topic", "x", "Sub", False, "defaultTopicPerm: DENY"),
        ("plain-1", ADDRESS, "Group", "G", "Sub", True, "groupPerms: G=SUB"),
        ("default-1", ADDRESS, "Group", "x", "Sub", True, "defaultGroupPerm: SUB"),
        ("default-1", ADDRESS, "Topic", "x", "Sub", True, "defaultTopicPerm: PUB|SUB"),
        ("admin-1", ADDRESS, "Topic", "x", "Sub", True, "admin: true"),
        ("admin-1", ADDRESS, "Cluster", "c", "Update", True, "admin: true"),
        ("plain-1", ADDRESS, "Cluster", "c", "Update", False, "admin: false"),
        ("plain-1", ADDRESS, "Topic", "P", "Delete", False, "admin: false"),
        ("plain-1", "10.8.8.8", "Topic", "D", "Pub", True, "whiteRemoteAddress: 10.8.8.8"),
        ("plain-1", "10.9.9.9", "Topic", "D", "Pub", True, "globalWhiteRemoteAddresses: 10.9.9.*"),
    ],
)
def test_a_decision_names_its_rule(
    account: str, address: str, kind: str, name: str, action: str, is_allowed: bool, rule: str
) -> None:
    identity = rules().identify(address, signed(account, Code.HEART_BEAT))
    decision = rules().may(identity, address, ResourceKind(kind), name, Action(action))
    assert (decision.is_allowed, decision.rule) == (is_allowed, rule)
    assert bool(decision.remark) is not is_allowed


def test_demands_name_topics_and_groups() -> None:
    asked = request(Code.PULL_MESSAGE, topic="T", consumerGroup="g")
    assert demand_of(asked, Mode.STRICT) == Demand(
        (Need("T", Perm.SUB), Need("%RETRY%g", Perm.SUB))
    )
    assert demand_of(request(Code.GET_BROKER_RUNTIME_INFO), Mode.STRICT) == SIGNED
    assert demand_of(request(99_999), Mode.STRICT) == ADMIN
    assert demand_of(request(99_999), Mode.JAVA) == SIGNED


@given(
    code=st.sampled_from(list(Code)),
    body=st.one_of(st.binary(max_size=40), st.sampled_from([b"{}", b"null", b"[]", heartbeat("")])),
    fields=st.dictionaries(
        st.sampled_from(["a", "b", "topic", "group", "consumerGroup", "srcGroup", SIGNATURE]),
        NAMES,
    ),
    mode=st.sampled_from(Mode),
)
def test_no_request_crashes_the_rules_or_passes_unsigned(
    code: Code, body: bytes, fields: dict[str, str], mode: Mode
) -> None:
    with contextlib.suppress(ProtocolError):
        demand_of(request(code, body, **fields), mode)
    for access_key in ("plain-1", "admin-1", "admin-2"):
        with pytest.raises(Refusal):
            rules(mode).admit(ADDRESS, request(code, body, **fields, AccessKey=access_key))

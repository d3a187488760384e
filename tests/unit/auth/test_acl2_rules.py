"""Demands of the request codes, and decisions of ACL 2.0 about them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.auth.acl2.demands import Mode, Unreadable, demands_of
from core_broker.auth.acl2.model import SUBJECT_PREFIX, User, UserStatus, UserType
from core_broker.auth.acl2.rules import Acl2Rules, RuleSettings
from core_broker.auth.acl2.source_addresses import SourceAddresses, peer_address
from core_broker.auth.acl2.tables import AccessTables, put_acl
from core_broker.auth.contracts import Action, Established, Refusal, Request, ResourceKind
from core_broker.client.acl import AclRpcHook
from core_broker.remoting.bodies import AclInfo, PolicyEntryInfo, PolicyInfo
from core_broker.remoting.codes import LanguageCode, RequestCode
from core_broker.remoting.command import RemotingCommand

TOPIC_GROUP = {"topic": "t", "consumerGroup": "g", "group": "g", "groupName": "g", "b": "t"}
BEAT = {
    "clientID": "c",
    "producerDataSet": [{"groupName": "p"}],
    "consumerDataSet": [
        {
            "groupName": "g",
            "subscriptionDataSet": [{"topic": "t"}, {"topic": "%RETRY%g"}, {"topic": "%RETRY%h"}],
        }
    ],
}
ASSIGNMENT = {"topic": "t", "consumerGroup": "g", "clientId": "c", "strategyName": "AVG"}
LOCK = {
    "consumerGroup": "g",
    "clientId": "c",
    "mqSet": [{"topic": "t", "brokerName": "b", "queueId": n} for n in range(3)],
}


def request(code: int, fields: dict[str, str] | None = None, body: Any = b"") -> Request:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Request(code, 479, LanguageCode.JAVA, fields or {}, content)


def texts(code: int, fields: dict[str, str], body: Any = b"", mode: Mode = Mode.STRICT) -> Any:
    demands = demands_of(request(code, fields, body), "C", mode)
    if demands is None:
        return None
    return [f"{kind}:{name} {'|'.join(actions)}" for kind, name, actions in demands]


@pytest.mark.parametrize(
    ("code", "fields", "body", "demands"),
    [
        (10, {"topic": "t"}, b"", ["Topic:t Pub"]),
        (310, {"b": "t", "a": "p"}, b"", ["Topic:t Pub"]),
        (320, {"b": "t"}, b"", ["Topic:t Pub"]),
        (310, {"b": "%RETRY%g", "a": "mine"}, b"", ["Group:g Sub"]),
        (10, {"topic": "%RETRY%g", "group": "mine"}, b"", ["Group:g Sub"]),
        (310, {"b": "%DLQ%g"}, b"", ["Topic:%DLQ%g Pub"]),
        (37, {"producerGroup": "p"}, b"", []),
        (37, {"topic": "t"}, b"", ["Topic:t Pub"]),
        (36, {"group": "g", "originTopic": "t"}, b"", ["Group:g Sub"]),
        (11, TOPIC_GROUP, b"", ["Topic:t Sub", "Group:g Sub"]),
        (11, {"topic": "%RETRY%g", "consumerGroup": "g"}, b"", ["Group:g Sub"]),
        (11, {"topic": "%RETRY%h", "consumerGroup": "g"}, b"", ["Group:h Sub", "Group:g Sub"]),
        (12, TOPIC_GROUP, b"", ["Topic:t Sub|Get"]),
        (14, TOPIC_GROUP, b"", ["Topic:t Sub|Get", "Group:g Sub|Get"]),
        (15, TOPIC_GROUP, b"", ["Topic:t Sub|Update", "Group:g Sub|Update"]),
        (34, {}, BEAT, ["Group:g Sub", "Topic:t Sub", "Group:h Sub"]),
        (35, {"producerGroup": "p"}, b"", []),
        (35, {"consumerGroup": "g"}, b"", ["Group:g Sub"]),
        (38, TOPIC_GROUP, b"", ["Group:g Sub|Get"]),
        (41, {}, LOCK, ["Group:g Sub", "Topic:t Sub"]),
        (42, {}, LOCK, ["Group:g Sub", "Topic:t Sub"]),
        (17, TOPIC_GROUP, b"", ["Topic:t Create"]),
        (215, TOPIC_GROUP, b"", ["Topic:t Delete"]),
        (207, TOPIC_GROUP, b"", ["Group:g Delete"]),
        (222, TOPIC_GROUP, b"", ["Group:g Update", "Topic:t Update"]),
        (
            314,
            {"srcGroup": "s", "destGroup": "d", "topic": "t"},
            b"",
            ["Group:d Update", "Topic:t Update"],
        ),
        (33, {"offset": "0"}, b"", []),
        (33, {"topic": "t"}, b"", ["Topic:t Get"]),
        (208, {"consumerGroup": "g"}, b"", ["Group:g Get"]),
        (
            308,
            {"topic": "t", "filterGroups": "g,h", "compareGroup": "i"},
            b"",
            ["Group:i Get", "Group:g Get", "Group:h Get", "Topic:t Get"],
        ),
        *((code, {}, b"", ["Cluster:C Get"]) for code in (204, 315, 317, 328, 3004, 3010)),
        *((code, {}, b"", ["Cluster:C Update"]) for code in (3001, 3003, 3006, 3008, 60006)),
    ],
)
def test_codes_that_both_modes_check(
    code: int, fields: dict[str, str], body: Any, demands: list[str]
) -> None:
    assert texts(code, fields, body) == demands
    assert texts(code, fields, body, Mode.JAVA) == demands


@pytest.mark.parametrize(
    ("code", "fields", "body", "demands"),
    [
        *((code, {}, b"", ["Cluster:C Update"]) for code in (25, 306, 316, 329, 401)),
        *((code, {}, b"", ["Cluster:C Get"]) for code in (21, 26, 28, 43, 45, 201, 305, 907)),
        (18, {}, {"topicConfigList": [{"topicName": "t"}]}, ["Topic:t Create"]),
        (200, {}, {"groupName": "g"}, ["Group:g Create"]),
        (225, {}, {"groupConfigList": [{"groupName": "g"}]}, ["Group:g Create"]),
        (
            46,
            {},
            {"clientId": "c", "group": "g", "subscriptionData": {"topic": "t"}},
            ["Group:g Sub", "Topic:t Sub"],
        ),
        (324, TOPIC_GROUP, b"", ["Topic:t Pub"]),
        (325, TOPIC_GROUP, b"", ["Topic:t Pub"]),
        (361, TOPIC_GROUP, b"", ["Topic:t Sub", "Group:g Sub"]),
        (
            400,
            {},
            ASSIGNMENT,
            ["Topic:t Sub", "Group:g Sub"],
        ),
        (60003, TOPIC_GROUP, b"", ["Group:g Update", "Topic:t Update"]),
        (200151, {}, b"", None),
        (9999, {}, b"", None),
    ],
)
def test_codes_that_rocketmq_leaves_open(
    code: int, fields: dict[str, str], body: Any, demands: list[str] | None
) -> None:
    assert texts(code, fields, body) == demands
    assert texts(code, fields, body, Mode.JAVA) == []


@pytest.mark.parametrize("code", [10, 310, 11, 12, 14, 15, 36, 38, 17, 215, 207, 222, 202, 361])
def test_a_missing_field_is_refused(code: int) -> None:
    with pytest.raises(Unreadable):
        demands_of(request(code), "C", Mode.STRICT)


@pytest.mark.parametrize("code", [18, 34, 41, 42, 46, 200, 225, 400])
@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b'{"consumerDataSet":7}'])
def test_an_unreadable_body_is_refused(code: int, body: bytes) -> None:
    if code in (18, 225) and body.endswith(b"7}"):
        return  # all members have defaults
    with pytest.raises(Unreadable):
        demands_of(request(code, {}, body), "C", Mode.STRICT)


def test_every_code_of_a_broker_has_a_row() -> None:
    """Codes of name servers, of clients, and codes without a handler need a super user."""
    from core_broker.processors.table import RequestTable

    handled = {
        int(RequestCode[name])
        for method in (RequestTable._data_path, RequestTable._administration)
        for name in method.__code__.co_names
        if name in RequestCode.__members__
    }
    assert len(handled) > 60
    unlisted = []
    for code in sorted(handled):
        try:
            if demands_of(request(code), "C", Mode.STRICT) is None:
                unlisted.append(code)
        except Unreadable:
            pass
    assert unlisted == []


# ---- decisions ----------------------------------------------------------------------------------

PASSWORD = "secret-of-alice"


def tables(*entries: str, status: UserStatus = UserStatus.ENABLE) -> AccessTables:
    """Alice with entries such as `Custom Allow Topic:t Pub,Sub 10.0.0.0/8`."""
    made = AccessTables().with_user(User("alice", PASSWORD, UserType.NORMAL, status))
    made = made.with_user(User("root", "secret-of-root", UserType.SUPER))
    for text in entries:
        policy, decision, resource, actions, *sources = text.split()
        entry = PolicyEntryInfo(
            resource=resource, actions=actions.split(","), decision=decision, source_ips=sources
        )
        info = AclInfo(policies=[PolicyInfo(policy_type=policy, entries=[entry])])
        made = put_acl(made, "User:alice", info)
    return made


def rules(*entries: str, status: UserStatus = UserStatus.ENABLE, **settings: Any) -> Acl2Rules:
    return Acl2Rules(tables(*entries, status=status), RuleSettings("C", **settings), 1)


def signed(
    code: int, fields: dict[str, str], user: str = "alice", password: str = PASSWORD
) -> Request:
    command = RemotingCommand.request(code, dict(fields))
    AclRpcHook(user, password).before_request("", command)
    return request(code, command.ext_fields)


def outcome(made: Acl2Rules, asked: Request, address: str = "10.0.0.1") -> str:
    """ "" for an admitted request, else reason and remark; each refusal has code 16."""
    try:
        made.admit(address, asked)
    except Refusal as refusal:
        return f"{refusal.reason}: {refusal.remark}" if refusal.code == 16 else f"{refusal.code}"
    return ""


SEND = {"b": "t"}


@pytest.mark.parametrize(
    ("asked", "refused"),
    [
        (request(310, SEND), "no-account: username cannot be null."),
        (signed(310, SEND, "zed"), "unknown-account: User:zed is not found."),
        (signed(310, SEND, password="wrong"), "bad-signature: check signature failed."),
        (request(310, {**SEND, "AccessKey": "alice"}), "bad-signature: check signature failed."),
        (signed(310, SEND), ""),
        (
            signed(310, {"b": "u"}),
            "no-permission: User:alice has no permission to access Topic:u "
            "from 10.0.0.1, no matched policies.",
        ),
        (
            signed(310, {"b": "no"}),
            "no-permission: User:alice has no permission to access Topic:no "
            "from 10.0.0.1, the decision is deny.",
        ),
        (signed(310, {}), "unreadable: parse authorization context error."),
        (signed(25, {}, "root", "secret-of-root"), ""),
        (signed(200151, {}, "root", "secret-of-root"), ""),
        (
            signed(200151, {}),
            "admin-only: User:alice has no permission: request code 200151 needs a super user.",
        ),
    ],
)
def test_outcomes(asked: Request, refused: str) -> None:
    made = rules(
        "Custom Allow Topic:t Pub", "Custom Deny Topic:n* All", "Default Allow Group:* Sub"
    )
    assert outcome(made, asked) == refused


def test_a_disabled_user_is_refused() -> None:
    made = rules("Custom Allow * All", status=UserStatus.DISABLE)
    assert outcome(made, signed(310, SEND)) == "disabled-account: User:alice is disabled."
    identity = rules("Custom Allow * All").identify("", signed(310, SEND))
    assert not made.may(identity, "::1", ResourceKind.TOPIC, "t", Action.PUB).is_allowed


def test_default_entries_decide_only_without_custom_ones() -> None:
    made = rules("Custom Deny Topic:t Pub", "Default Allow Topic:* Pub,Sub")
    assert "deny" in outcome(made, signed(310, SEND))
    assert outcome(made, signed(310, {"b": "u"})) == ""
    assert outcome(made, signed(12, {"topic": "t"})) == ""


def test_white_lists() -> None:
    made = rules(authentication_whitelist=frozenset({28, 310}))
    identity = made.identify("", request(28))
    assert (identity.account, identity.is_admin) == ("", False)
    assert identity.how is Established.NOT_CHECKED
    # Without a signature nobody is believed to be the super user.
    forged = request(310, {**SEND, "AccessKey": "root"})
    assert outcome(made, forged).startswith("no-account: Authorization failed.")
    both = rules(authentication_whitelist=frozenset({28}), authorization_whitelist=frozenset({28}))
    assert outcome(both, request(28)) == ""
    assert outcome(both, request(26)).startswith("no-account: ")
    open_to_users = rules(authorization_whitelist=frozenset({310}))
    assert outcome(open_to_users, signed(310, SEND)) == ""
    assert outcome(open_to_users, request(310, SEND)).startswith("no-account: ")


def test_authentication_alone() -> None:
    made = rules(is_authorizing=False)
    assert outcome(made, signed(25, {})) == ""
    assert outcome(made, request(25)).startswith("no-account: ")


def test_the_decision_names_its_rule() -> None:
    made = rules("Custom Allow Topic:t Pub,Sub 10.0.0.0/8 ::1")
    identity = made.identify("", signed(310, SEND))
    decision = made.may(identity, "10.1.2.3", ResourceKind.TOPIC, "t", Action.SUB)
    assert decision == (True, "Allow Pub,Sub on Topic:t from 10.0.0.0/8,::1", "")
    root = made.identify("", signed(25, {}, "root", "secret-of-root"))
    assert made.may(root, "1.1.1.1", ResourceKind.GROUP, "g", Action.DELETE).rule == "super user"


@pytest.mark.parametrize(
    ("source", "peer", "matches"),
    [
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("10.0.0.5/8", "10.200.0.1", True),
        ("10.0.0.0/8", "::ffff:10.1.1.1", True),
        ("::ffff:10.0.0.0/104", "10.1.1.1", True),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("fe80::/10", "fe80::1%eth0", True),
        ("::1", "0:0:0:0:0:0:0:1", True),
        ("::1", "127.0.0.1", False),
        ("0.0.0.0/0", "::1", False),
        ("0.0.0.0/0", "a-host", False),
    ],
)
def test_source_addresses(source: str, peer: str, matches: bool) -> None:
    assert SourceAddresses([source]).has(peer_address(peer)) is matches
    assert SourceAddresses().has(peer_address(peer))


NO_SOURCES = [
    *("10.0.0.*", "10.0.0.1-5", "localhost", "1.2.3", "010.1.1.1", "256.1.1.1", "[::1]"),
    *(" 10.0.0.1", "10.0.0.1/33", "10.0.0.1/255.0.0.0", "10.0.0.1/", "10.0.0.1/-1"),
    *("10.0.0.1/1e1", "::1%eth0", ""),
]


@pytest.mark.parametrize("text", NO_SOURCES)
def test_texts_that_are_no_source_address(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the text comes from ipaddress
        SourceAddresses([text])


@given(
    code=st.sampled_from([int(code) for code in RequestCode]),
    fields=st.dictionaries(st.sampled_from([*TOPIC_GROUP, "AccessKey"]), st.text(max_size=6)),
    body=st.binary(max_size=40),
)
def test_no_request_of_an_unsigned_sender_is_admitted(
    code: int, fields: dict[str, str], body: bytes
) -> None:
    made = rules("Custom Allow * All")
    with pytest.raises(Refusal):
        made.admit("10.0.0.1", request(code, fields, body))
    assert SUBJECT_PREFIX + "alice" in made._tables.acls

"""Explanations agree with the decisions about requests, and name the deciding rule."""

from collections.abc import Callable
from itertools import product

import pytest

from core_broker.auth.acl1.demands import Mode as Acl1Mode
from core_broker.auth.acl1.reading import read_acl_file
from core_broker.auth.acl1.rules import Acl1Rules
from core_broker.auth.acl2.bodies import acl_info, tables_of, user_info
from core_broker.auth.acl2.demands import Mode
from core_broker.auth.acl2.model import User, UserStatus, UserType
from core_broker.auth.acl2.rules import Acl2Rules, RuleSettings
from core_broker.auth.acl2.tables import AccessTables, put_acl
from core_broker.auth.contracts import Check, Refusal, Request
from core_broker.auth.explanation import (
    EXPLAINED,
    DecidingRule,
    ExplainableRules,
    Explanation,
    Outcome,
    Question,
    Step,
    explain,
)
from core_broker.auth.gate import Gate
from core_broker.auth.signature import SigningKey, signed_fields
from core_broker.remoting.bodies import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo
from core_broker.remoting.codes import LanguageCode, ResponseCode
from core_broker.remoting.codes import RequestCode as Code
from tests.support.acl1_matrix import FILE

ADDRESSES = ("10.0.0.1", "192.168.0.1", "127.0.0.8", "127.0.0.9", "fd00::1")
TOPICS = ("orders", "orders-eu", "orders-us", "P", "PS", "D", "RMQ_SYS_TRACE_TOPIC", "%RETRY%G")
GROUPS = ("", "G", "GD", "billing")
USERS = ("root", "alice", "billing", "gone", "nobody", "")
ENTRIES = {
    "alice": (
        ("Custom", "Topic:orders*", "Pub", "Allow", None),
        ("Custom", "Topic:orders-eu", "All", "Deny", ["10.0.0.0/8"]),
        ("Custom", "Topic:P", "Sub", "Allow", ["fd00::/8"]),
        ("Default", "Topic:*", "Pub", "Deny", None),
        ("Default", "Group:*", "Sub", "Allow", None),
    ),
    "billing": (
        ("Custom", "Topic:orders", "Sub", "Allow", None),
        ("Custom", "Group:billing", "Sub", "Allow", None),
    ),
    "gone": (("Custom", "*", "All", "Allow", None),),
}
#: The header of each request as clients and mqadmin send it.
FIELDS: dict[Code, Callable[[Question], dict[str, str]]] = {
    Code.SEND_MESSAGE_V2: lambda asked: {"a": "PG", "b": asked.topic, "e": "0"},
    Code.PULL_MESSAGE: lambda asked: {
        "topic": asked.topic,
        "consumerGroup": asked.group,
        "queueId": "0",
    },
    Code.UPDATE_AND_CREATE_TOPIC: lambda asked: {"topic": asked.topic, "perm": "6"},
    Code.DELETE_TOPIC_IN_BROKER: lambda asked: {"topic": asked.topic},
    Code.DELETE_SUBSCRIPTIONGROUP: lambda asked: {"groupName": asked.group},
    Code.UPDATE_BROKER_CONFIG: lambda asked: {},
}


def accounts() -> Acl1Rules:
    file = read_acl_file("plain_acl.yml", FILE, 0)
    by_name = {account.access_key: account for account in file.accounts}
    return Acl1Rules(1, Acl1Mode.STRICT, by_name, file.white_list)


def tables() -> AccessTables:
    made = AccessTables().with_user(User("root", "secret-of-root", UserType.SUPER))
    for name, entries in ENTRIES.items():
        status = UserStatus.DISABLE if name == "gone" else UserStatus.ENABLE
        made = made.with_user(User(name, f"secret-of-{name}", status=status))
        for kind, resource, actions, decision, sources in entries:
            entry = PolicyEntryInfo(
                resource=resource, actions=[actions], decision=decision, source_ips=sources
            )
            policy = PolicyInfo(policy_type=kind, entries=[entry])
            made = put_acl(made, "", AclInfo(subject=f"User:{name}", policies=[policy]))
    return made


def users(mode: Mode = Mode.STRICT, whitelist: frozenset[int] = frozenset()) -> Acl2Rules:
    settings = RuleSettings("C", mode=mode, authorization_whitelist=whitelist)
    return Acl2Rules(tables(), settings, 1)


def asked(account: str, address: str, topic: str, group: str = "") -> Question:
    """A question about a pull with a group, about a send without."""
    code = Code.PULL_MESSAGE if group else Code.SEND_MESSAGE_V2
    return Question(account, address, topic, group, code)


def gate_decision(rules: tuple[ExplainableRules, ...], question: Question) -> tuple[int, str]:
    """Code and remark of a gate for the signed request of a client; 0 and "" when admitted."""
    gate = Gate()
    for each in rules:
        (gate.use_acl1 if isinstance(each, Acl1Rules) else gate.use_acl2)(each)
    fields = {"AccessKey": question.account} | FIELDS[question.code](question)
    body = b"a message" if question.code is Code.SEND_MESSAGE_V2 else b""
    key = SigningKey(f"secret-of-{question.account}")
    fields["Signature"] = key.sign(signed_fields(fields), body)
    try:
        gate.admit(question.address, Request(question.code, 479, LanguageCode.JAVA, fields, body))
    except Refusal as refusal:
        return refusal.code, refusal.remark
    return ResponseCode.SUCCESS, ""


@pytest.mark.parametrize(
    ("rules", "names"),
    [
        ((accounts(),), ("nothing", "defaults", "listed-1", "admin-1", "admin-2", "nobody-1", "")),
        ((users(),), USERS),
        ((users(Mode.JAVA),), USERS),
        ((users(whitelist=frozenset({310})),), USERS),
        ((accounts(), users()), (*USERS, "listed-1")),
    ],
    ids=["acl1", "acl2", "acl2-java", "acl2-exempt", "both"],
)
def test_explanations_agree_with_the_gate(
    rules: tuple[ExplainableRules, ...], names: tuple[str, ...]
) -> None:
    decided = set()
    cases = product(names, ADDRESSES, TOPICS, GROUPS, FIELDS)
    for question in map(Question._make, cases):
        if not question.group and EXPLAINED[question.code].group:
            continue
        explanation = explain(rules, question)
        code, remark = gate_decision(rules, question)
        assert (explanation.code, explanation.remark) == (code, remark), question
        assert explanation.is_allowed == (code == ResponseCode.SUCCESS), question
        assert all(rule.rule for rule in explanation.rules), question
        check_paths(explanation, question)
        decided.add(explanation.is_allowed)
    assert decided == {True, False}


def check_paths(explanation: Explanation, question: Question) -> None:
    """Each path ends in its decision: nothing is reached behind the deciding check."""
    refused = 0
    for path in explanation.paths:
        outcomes = [step.outcome for step in path]
        reached = [each for each in outcomes if each is not Outcome.NOT_REACHED]
        assert outcomes == reached + [Outcome.NOT_REACHED] * (len(path) - len(reached)), question
        assert reached[-1] in (Outcome.ALLOWED, Outcome.REFUSED), question
        assert Outcome.REFUSED not in reached[:-1], question
        assert all(step.rules for step in path if step.outcome is reached[-1]), question
        refused += reached[-1] is Outcome.REFUSED
    assert bool(refused) is not explanation.is_allowed, question


def rule(rules: ExplainableRules, *question: str) -> list[tuple[str, str]]:
    return [(each.resource, each.rule) for each in explain([rules], asked(*question)).rules]


@pytest.mark.parametrize(
    ("question", "deciding"),
    [
        (("root", "10.0.0.1", "P"), [("Topic:P", "super user")]),
        (("alice", "10.0.0.1", "orders"), [("Topic:orders", "Allow Pub on Topic:orders*")]),
        (
            ("alice", "10.0.0.1", "orders-eu"),
            [("Topic:orders-eu", "Deny All on Topic:orders-eu from 10.0.0.0/8")],
        ),
        (
            ("alice", "192.168.0.1", "orders-eu"),
            [("Topic:orders-eu", "Allow Pub on Topic:orders*")],
        ),
        (("alice", "10.0.0.1", "P"), [("Topic:P", "Deny Pub on Topic:*")]),
        (("alice", "10.0.0.1", "P", "g"), [("Topic:P", "no entry")]),
        (
            ("alice", "fd00::1", "P", "g"),
            [
                ("Topic:P", "Allow Sub on Topic:P from fd00::/8"),
                ("Group:g", "Allow Sub on Group:*"),
            ],
        ),
        (("alice", "10.0.0.1", "%RETRY%g"), [("Group:g", "Allow Sub on Group:*")]),
        (("gone", "10.0.0.1", "P"), [("", "disabled-account")]),
        (("nobody", "10.0.0.1", "P"), [("", "unknown-account")]),
        (("", "10.0.0.1", "P"), [("", "no-account")]),
    ],
)
def test_the_deciding_rule_of_acl_2(
    question: tuple[str, ...], deciding: list[tuple[str, str]]
) -> None:
    assert rule(users(), *question) == deciding


@pytest.mark.parametrize(
    ("question", "deciding"),
    [
        (("", "127.0.0.9", "P"), [("Topic:P", "globalWhiteRemoteAddresses: 127.0.0.9")]),
        (("nothing", "127.0.0.8", "P"), [("Topic:P", "whiteRemoteAddress: 127.0.0.8")]),
        (("listed-1", "10.0.0.1", "P"), [("Topic:P", "topicPerms: P=PUB")]),
        (("listed-1", "10.0.0.1", "X"), [("Topic:X", "defaultTopicPerm: DENY")]),
        (
            ("listed-1", "10.0.0.1", "S", "G"),
            [("Topic:S", "topicPerms: S=SUB"), ("Group:G", "groupPerms: G=SUB")],
        ),
        (("listed-1", "10.0.0.1", "S", "GD"), [("Group:GD", "groupPerms: GD=DENY")]),
        (("admin-1", "10.0.0.1", "P"), [("Topic:P", "admin: true")]),
        (("nobody-1", "10.0.0.1", "P"), [("", "unknown-account")]),
    ],
)
def test_the_deciding_rule_of_acl_1(
    question: tuple[str, ...], deciding: list[tuple[str, str]]
) -> None:
    assert rule(accounts(), *question) == deciding


def test_a_code_without_permissions_is_named() -> None:
    rules = users(whitelist=frozenset({Code.SEND_MESSAGE_V2.value}))
    explanation = explain([rules], Question("alice", "10.0.0.1", "P"))
    assert explanation.is_allowed
    assert explanation.rules == (DecidingRule("", "request code 310 needs no permission"),)


@pytest.mark.parametrize("mode", Mode)
def test_a_brokers_answers_give_the_same_explanations(mode: Mode) -> None:
    """Answers without passwords are enough."""
    local = users(mode)
    for name in ("root", "alice", "billing", "gone"):
        user = user_info(tables().users[name], with_password=False)
        acl = tables().acls.get(f"User:{name}")
        made, unreadable = tables_of(user, acl and acl_info(f"User:{name}", acl))
        remote = Acl2Rules(made, RuleSettings("C", mode=mode), 0)
        assert not unreadable
        for address, topic, group in product(ADDRESSES, TOPICS, GROUPS):
            question = asked(name, address, topic, group)
            assert explain([remote], question) == explain([local], question), question


def test_unreadable_entries_of_a_foreign_broker_are_reported() -> None:
    entries = [
        PolicyEntryInfo(resource=resource, actions=["Pub"], decision="Allow")
        for resource in ("Topic:a*b", "Topic:P", None)
    ]
    acl = AclInfo(subject="User:u", policies=[PolicyInfo(policy_type="Custom", entries=entries)])
    made, unreadable = tables_of(UserInfo(username="u"), acl)
    assert unreadable == ["Topic:a*b", ""]
    rules = Acl2Rules(made, RuleSettings("C"), 0)
    assert explain([rules], Question("u", "10.0.0.1", "P")).is_allowed
    assert not explain([rules], Question("u", "10.0.0.1", "axb")).is_allowed


def path(rules: ExplainableRules, *question: str) -> tuple[Step, ...]:
    (only,) = explain([rules], asked(*question)).paths
    return only


def test_a_path_shows_the_matching_entries_in_order_of_priority() -> None:
    assert path(users(), "alice", "10.0.0.1", "orders-eu") == (
        Step(Check.ACCOUNT, Outcome.PASSED),
        Step(Check.SIGNATURE, Outcome.PASSED),
        Step(Check.ADMINISTRATOR, Outcome.PASSED),
        Step(
            Check.PERMISSIONS,
            Outcome.REFUSED,
            "Topic:orders-eu",
            (
                "Deny All on Topic:orders-eu from 10.0.0.0/8",
                "Allow Pub on Topic:orders*",
                "Default Deny Pub on Topic:*",
            ),
        ),
    )


def test_a_path_ends_at_the_deciding_check() -> None:
    outcomes = [(step.check, step.outcome) for step in path(users(), "root", "10.0.0.1", "P")]
    assert outcomes[-2:] == [
        (Check.ADMINISTRATOR, Outcome.ALLOWED),
        (Check.PERMISSIONS, Outcome.NOT_REACHED),
    ]
    first, *later = path(accounts(), "nothing", "127.0.0.9", "P")
    assert first == Step(
        Check.WHITE_LIST, Outcome.ALLOWED, "", ("globalWhiteRemoteAddresses: 127.0.0.9",)
    )
    assert {step.outcome for step in later} == {Outcome.NOT_REACHED}


def test_the_second_resource_is_not_reached_behind_a_refusal() -> None:
    *_, topic, group = path(accounts(), "nothing", "10.0.0.1", "P", "G")
    assert (topic.resource, topic.outcome) == ("Topic:P", Outcome.REFUSED)
    assert (group.resource, group.outcome) == ("Group:G", Outcome.NOT_REACHED)

"""The decisions of ACL 2.0 are those of RocketMQ 5.3.3: a recorded matrix of requests."""

import pytest

from core_broker.auth.acl2.demands import Mode
from tests.support.acl2_matrix import ALLOWED, SENDERS, decisions_of_rules, recorded

Decisions = dict[tuple[str, str], str]

#: Requests that Gantry decides otherwise in both modes, and why.
OTHERWISE = {
    # The retry topic of a group is the resource of the group with every code.
    *(f"{code} %RETRY%G G" for code in (12, 37, 370)),
    # The group of the retry topic is checked beside the group that the client names.
    *(f"{code} %RETRY%other G" for code in (11, 14, 15, 34)),
    # The group of a send to a retry topic is the group of the topic.
    *(f"{code} %RETRY%other as G" for code in (310, 320)),
    # RocketMQ takes an absent name for the name `null`; here the request is unreadable.
    *(f"{code} - G" for code in (10, 310, 320, 370, 11, 12, 14, 15)),
    *(f"{code} T -" for code in (36, 38, 11, 14, 15)),
    # A super user's body is left to the handler.
    *(f"{code} no JSON" for code in (34, 41, 42)),
}
#: Requests that Gantry admits and RocketMQ refuses in both modes: the first, the third and the
#: last kind of OTHERWISE.
MORE = {title for title in OTHERWISE if title.endswith(("%RETRY%G G", "as G", "no JSON"))}
#: Codes that RocketMQ checks for the signature only; unknown codes too.
UNCHECKED = {
    *(18, 21, 25, 26, 28, 43, 45, 46, 50, 51, 52, 53, 54, 60, 61, 200, 201, 225, 305, 306, 316),
    *(324, 325, 329, 361, 400, 401, 402, 513, 907, 1007, 2001, 2002, 2003, 2004, 4711, 200151),
}
#: Senders whose lists RocketMQ decides by the order of creation: a Deny that RocketMQ overrides,
#: and an Allow.
DENIED_BY_PRIORITY = {"denied-literal-then-prefix", "denied-literal-then-all"}
ALLOWED_BY_PRIORITY = {"literal-then-prefix"}


@pytest.fixture(scope="module")
def java() -> Decisions:
    return recorded()


def code_of(title: str) -> int:
    return int(title.partition(" ")[0])


def differing(ours: Decisions, java: Decisions) -> set[tuple[str, str]]:
    return {key for key, decision in ours.items() if decision != java[key]}


def test_the_java_mode_decides_as_java(java: Decisions) -> None:
    ours = decisions_of_rules(Mode.JAVA)
    assert ours.keys() == java.keys()
    found = differing(ours, java)
    assert {title for title, _ in found} == OTHERWISE
    admitted = {title for title, name in found if ours[title, name] == ALLOWED}
    assert admitted == MORE


def test_the_strict_mode_refuses_what_java_refuses_and_closes_the_holes(java: Decisions) -> None:
    ours = decisions_of_rules(Mode.STRICT)
    found = differing(ours, java)
    admitted = {key for key in found if ours[key] == ALLOWED and key[0] not in MORE}
    assert {name for _, name in admitted} == ALLOWED_BY_PRIORITY
    closed = {
        (title, name)
        for title, name in found
        if java[title, name] == ALLOWED and title not in OTHERWISE and " -" not in title
    }
    by_priority = {key for key in closed if key[1] in DENIED_BY_PRIORITY}
    assert {name for _, name in by_priority} == DENIED_BY_PRIORITY
    assert {code_of(title) for title, _ in closed - by_priority} == UNCHECKED


def test_only_valid_signatures_of_enabled_users_pass(java: Decisions) -> None:
    for decisions in (java, *map(decisions_of_rules, Mode)):
        letters = {
            name: {letter for (_, sender), letter in decisions.items() if sender == name}
            for name in ("no account", "unknown", "wrong password", "unsigned", "disabled")
        }
        assert letters == {
            "no account": {"n"},
            "unknown": {"u"},
            "wrong password": {"s"},
            "unsigned": {"s"},
            "disabled": {"d"},
        }


def test_the_recording_has_every_kind_of_decision(java: Decisions) -> None:
    assert {name for _, name in java} == set(SENDERS)
    assert len(java) > 10_000
    assert {*"TGCtgc.?nuds"} == set(java.values())

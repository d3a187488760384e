"""A matrix of requests for ACL 2.0: users with lists, request codes, topics and groups.

`recorded` reads the decisions of a broker of RocketMQ 5.3.3 with the same users, from
tests/unit/auth/acl2-5.3.3.txt; `python -m tests.compat.record_acl2` renews the recording.

A decision is a letter:

    .        allowed
    T G C    no entry matches the needed topic, group or cluster
    t g c    an entry denies the topic, group or cluster
    n u d s  no account, an unknown user, a disabled user, a wrong signature
    ?        the fields or the body of the request are unreadable
    -        the broker has no handler of the code
    !        the code needs a super user; RocketMQ has no such refusal
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from core_broker.auth.acl2.demands import Mode
from core_broker.auth.acl2.rules import Acl2Rules, RuleSettings
from core_broker.auth.acl2.tables import AccessTables, create_user, put_acl
from core_broker.auth.contracts import STORED_ACTIONS, Refusal, Request
from core_broker.auth.signature import SigningKey, signed_fields
from core_broker.remoting.bodies import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo
from core_broker.remoting.codes import LanguageCode, ResponseCode
from tests.support.acl2_requests import Asked, requests

RECORDED = Path(__file__).parents[1] / "unit" / "auth" / "acl2-5.3.3.txt"
CLUSTER: Final = "DefaultCluster"
ROOT: Final = ("root", "secret-of-root")
ALLOWED: Final = "."
NO_HANDLER: Final = "-"
HERE, THERE = "127.0.0.1", "127.0.0.8"

_ACTIONS = ("All", "Pub", "Sub", "Create", "Update", "Delete", "Get", "List")
#: Entries of the list of each user: policy type, resource, actions, decision, source addresses.
LISTS: Final[Mapping[str, tuple[str, ...]]] = {
    "no-list": (),
    **{f"{action.lower()}-everywhere": (f"Custom * {action} Allow",) for action in _ACTIONS},
    "all-topics": ("Custom Topic:* All Allow",),
    "all-groups": ("Custom Group:* All Allow",),
    "all-clusters": ("Custom Cluster:* All Allow",),
    "this-cluster": (f"Custom Cluster:{CLUSTER} All Allow",),
    "another-cluster": ("Custom Cluster:Another All Allow",),
    "all-namespaces": ("Custom Namespace:* All Allow",),
    "literals": ("Custom Topic:T All Allow", "Custom Group:G All Allow"),
    "prefixes": ("Custom Topic:T* All Allow", "Custom Group:G* All Allow"),
    "longer-literals": ("Custom Topic:TT All Allow", "Custom Group:GG All Allow"),
    "lower-case": ("Custom Topic:t All Allow", "Custom Group:g All Allow"),
    "retry-topics": ("Custom Topic:%RETRY%* All Allow",),
    "consumer": ("Custom Topic:T Sub Allow", "Custom Group:G Sub Allow"),
    "topic-denied": ("Custom * All Allow", "Custom Topic:T All Deny"),
    "group-denied": ("Custom * All Allow", "Custom Group:G All Deny"),
    "cluster-denied": ("Custom * All Allow", "Custom Cluster:* All Deny"),
    "sends-denied": ("Custom * All Allow", "Custom Topic:T Pub Deny"),
    "defaults": ("Default * All Allow",),
    "denied-before-default": ("Default * All Allow", "Custom Topic:T All Deny"),
    "allowed-before-default": ("Default * All Deny", "Custom Topic:T All Allow"),
    "some-addresses": (f"Custom * All Allow {THERE}",),
    "denied-address": ("Custom * All Allow", f"Custom Topic:* All Deny {HERE}/32,::1"),
    "literal-then-prefix": ("Custom Topic:T All Allow", "Custom Topic:T* All Deny"),
    "denied-literal-then-prefix": ("Custom Topic:T All Deny", "Custom Topic:T* All Allow"),
    "prefix-then-literal": ("Custom Group:G* All Deny", "Custom Group:G All Allow"),
    "denied-literal-then-all": ("Custom Topic:T All Deny", "Custom Topic:* All Allow"),
    "super": (),
    "disabled": ("Custom * All Allow",),
}


class Sender(NamedTuple):
    """A user, its password (empty: unsigned), and the address of the client."""

    username: str
    password: str
    address: str = HERE


SENDERS: Final = {
    **{name: Sender(name, f"secret-of-{name}") for name in LISTS},
    "some-addresses, there": Sender("some-addresses", "secret-of-some-addresses", THERE),
    "denied-address, there": Sender("denied-address", "secret-of-denied-address", THERE),
    "no account": Sender("", ""),
    "unknown": Sender("unknown", "secret-of-unknown"),
    "wrong password": Sender("super", "another-secret"),
    "unsigned": Sender("super", ""),
}
_REMARKS = {
    "username cannot be null.": "n",
    "User:unknown is not found.": "u",
    "User:disabled is disabled.": "d",
    "check signature failed.": "s",
    "parse authorization context error.": "?",
}
_NO_PERMISSION = re.compile(
    r"User:(?P<user>.+) has no permission to access (?P<kind>Topic|Group|Cluster):(?P<name>.+) "
    r"from (?P<address>.+), (?P<why>no matched policies|the decision is deny)\."
)
_SUPER_ONLY = re.compile(r"User:.+ has no permission: request code \d+ needs a super user\.")
#: Beginnings of the remarks of a broker that refuses a request before its handler.
_REFUSALS = ("Authentication failed", "Authorization failed", "User:")


def signed_by(sender: Sender, asked: Asked) -> dict[str, str]:
    """The ext fields with the account and its signature."""
    fields = dict(asked.fields)
    if sender.username:
        fields["AccessKey"] = sender.username
    if sender.password:
        key = SigningKey(sender.password)
        fields["Signature"] = key.sign(signed_fields(fields), asked.body)
    return fields


def outcome(sender: Sender, asked: Asked, code: int, remark: str | None) -> str:
    """The letter of an answer. Fails for a refusal with an unexpected user, name or address."""
    text = remark or ""
    if code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
        return NO_HANDLER
    if code != ResponseCode.NO_PERMISSION:
        return ALLOWED
    if text in _REMARKS:
        return _REMARKS[text]
    if _SUPER_ONLY.fullmatch(text):
        return "!"
    found = _NO_PERMISSION.fullmatch(text)
    if found is None:
        assert not text.startswith(_REFUSALS), f"{asked.title}: {text}"
        return ALLOWED  # a handler refused
    resource = f"{found['kind']}:{found['name']}"
    assert (found["user"], found["address"]) == (sender.username, sender.address), text
    stored = {"Topic:T"} if asked.code in STORED_ACTIONS else set()
    assert resource in {*asked.names, *stored, f"Cluster:{CLUSTER}"}, f"{asked.title}: {text}"
    letter = found["kind"][0]
    return letter if found["why"].startswith("no") else letter.lower()


def users() -> Iterator[UserInfo]:
    """The users as bodies of AUTH_CREATE_USER, and of AUTH_UPDATE_USER for the status."""
    for name in LISTS:
        yield UserInfo(
            username=name,
            password=f"secret-of-{name}",
            user_type="Super" if name == "super" else "Normal",
            user_status="disable" if name == "disabled" else "enable",
        )


def acls() -> Iterator[AclInfo]:
    """The lists as bodies of AUTH_CREATE_ACL: one entry each, in the order of creation."""
    for name, entries in LISTS.items():
        for policy, resource, actions, decision, *sources in map(str.split, entries):
            entry = PolicyEntryInfo(
                resource=resource,
                actions=[actions],
                decision=decision,
                source_ips=sources[0].split(",") if sources else None,
            )
            policies = [PolicyInfo(policy_type=policy, entries=[entry])]
            yield AclInfo(subject=f"User:{name}", policies=policies)


def tables() -> AccessTables:
    """Users and lists in a broker's form."""
    made = AccessTables()
    for user in users():
        made = create_user(made, user.username or "", user, by_super=True)
    for acl in acls():
        made = put_acl(made, "", acl)
    return made


def decisions_of_rules(mode: Mode) -> dict[tuple[str, str], str]:
    """The decisions of the rules in a mode, by title of the request and sender."""
    rules = Acl2Rules(tables(), RuleSettings(CLUSTER, mode=mode), generation=1)
    return {
        (asked.title, name): _decision(rules, asked, sender)
        for asked in requests()
        for name, sender in SENDERS.items()
    }


def _decision(rules: Acl2Rules, asked: Asked, sender: Sender) -> str:
    fields = signed_by(sender, asked)
    try:
        rules.admit(sender.address, Request(asked.code, 479, LanguageCode.JAVA, fields, asked.body))
    except Refusal as refusal:
        return outcome(sender, asked, refusal.code, refusal.remark)
    return ALLOWED


def as_text(decisions: Iterable[tuple[str, str, str]]) -> str:
    """The recording of (request, sender, decision): a line per request, a letter per sender."""
    rows: dict[str, dict[str, str]] = {}
    for title, sender, decision in decisions:
        rows.setdefault(title, {})[sender] = decision
    names = list(SENDERS)
    head = [f"# {' | '.join(names[begin : begin + 5])}" for begin in range(0, len(names), 5)]
    lines = ["".join(row[name] for name in names) + f" {title}" for title, row in rows.items()]
    return "\n".join([*head, *lines]) + "\n"


def recorded() -> dict[tuple[str, str], str]:
    """The decisions of the Java broker, by title of the request and sender."""
    rows = [row for row in RECORDED.read_text().splitlines() if not row.startswith("#")]
    parts = (row.partition(" ") for row in rows)
    return {
        (title, sender): letter
        for letters, _, title in parts
        for sender, letter in zip(SENDERS, letters, strict=True)
    }

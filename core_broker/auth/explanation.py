"""Why an account may publish, consume or administer: the decision, the deciding rules, the checks.

An explanation makes the request that a client would send, signs the request with the account's key
in the rules, and lets `Rules.admit` decide, as the gate does. Rules made from a broker's answers
have no keys of their own; any key does, because the same key signs and verifies. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from core_broker.auth.contracts import (
    Check,
    Established,
    Identity,
    Refusal,
    Request,
    Rules,
    Ruling,
)
from core_broker.auth.signature import ACCESS_KEY, SIGNATURE, signed_fields
from core_broker.remoting.codes import LanguageCode, RequestCode, ResponseCode

#: RocketMQ's version number of 5.3.3; the rules do not depend on the version.
_VERSION: Final = 479


class Generation(StrEnum):
    """The generations of access control."""

    ACL1 = "ACL 1.0"
    ACL2 = "ACL 2.0"


class ExplainableRules(Rules, Protocol):
    """Rules that also know an account by name, and the reasons of a decision."""

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks in the order of `admit`."""

    def identity_of(self, address: str, account: str) -> Identity:
        """Return the identity of a request with a right signature of the account; raises Refusal.

        `identify` is this and the check of the signature.
        """

    def rulings(self, identity: Identity, address: str, request: Request) -> list[Ruling]:
        """Return the decision about each resource of the request; empty: a signature is enough."""


class RequestFields(NamedTuple):
    """The header fields of a request that name a topic and a group; "" for an absent field."""

    topic: str = ""
    group: str = ""


#: The requests that can be explained. The administrative ones stand for their kind.
EXPLAINED: Final[Mapping[RequestCode, RequestFields]] = MappingProxyType(
    {
        RequestCode.SEND_MESSAGE_V2: RequestFields("b"),
        RequestCode.PULL_MESSAGE: RequestFields("topic", "consumerGroup"),
        RequestCode.UPDATE_AND_CREATE_TOPIC: RequestFields("topic"),
        RequestCode.DELETE_TOPIC_IN_BROKER: RequestFields("topic"),
        RequestCode.DELETE_SUBSCRIPTIONGROUP: RequestFields("", "groupName"),
        RequestCode.UPDATE_BROKER_CONFIG: RequestFields(),
    }
)


class Question(NamedTuple):
    """May the account, from the address, send the request about the topic and the group?"""

    #: Access key of ACL 1.0, or user name of ACL 2.0.
    account: str
    #: IP address of the client.
    address: str
    topic: str = ""
    #: The consumer group.
    group: str = ""
    #: A code of EXPLAINED.
    code: RequestCode = RequestCode.SEND_MESSAGE_V2


class DecidingRule(NamedTuple):
    """The rule that decides about a resource."""

    #: `Topic:name`, `Group:name` or `Cluster:name`; "" if the account itself is refused.
    resource: str
    #: The rule as the operator wrote it, "no entry", or the reason of `Refusal`.
    rule: str


class Outcome(StrEnum):
    """The outcome of a check."""

    #: The next check decides.
    PASSED = "passed"
    ALLOWED = "allowed"
    REFUSED = "refused"
    #: An earlier check has decided.
    NOT_REACHED = "not-reached"


class Step(NamedTuple):
    """A check on the way to the decision."""

    check: Check
    outcome: Outcome
    #: The resource of a check of permissions, else "".
    resource: str = ""
    #: The rules that match, the deciding rule first.
    rules: tuple[str, ...] = ()


class Explanation(NamedTuple):
    """The decision about a question, with its reasons."""

    is_allowed: bool
    #: One rule per resource if allowed; the first refusing rule if refused.
    rules: tuple[DecidingRule, ...]
    #: RocketMQ's code and remark of the refusal; SUCCESS and "" when allowed.
    code: int = ResponseCode.SUCCESS
    remark: str = ""
    #: The checks of each generation of access control.
    paths: tuple[tuple[Step, ...], ...] = ()


def explain(rules: Sequence[ExplainableRules], question: Question) -> Explanation:
    """Decide as a gate with these rules, ACL 1.0 before ACL 2.0; at least one generation."""
    explanations = [_explain(each, question) for each in rules]
    paths = tuple(path for each in explanations for path in each.paths)
    refusals = [each for each in explanations if not each.is_allowed]
    if refusals:
        return refusals[-1]._replace(paths=paths)  # the gate answers the refusal of 2.0
    deciding = tuple(rule for each in explanations for rule in each.rules)
    return Explanation(True, deciding, paths=paths)


def _explain(rules: ExplainableRules, question: Question) -> Explanation:
    identity = None
    with suppress(Refusal):  # admit refuses an unknown account with the same remark
        identity = rules.identity_of(question.address, question.account)
    request = _request(question, identity)
    try:
        identity = rules.admit(question.address, request)
    except Refusal as refusal:
        deciding = DecidingRule(refusal.resource, refusal.rule or refusal.reason)
        rulings = []
        if refusal.reason == "no-permission" and identity is not None:
            rulings = rules.rulings(identity, question.address, request)
        path = _path(rules.checks, _REFUSED_BY[refusal.reason], rulings, (deciding.rule,))
        return Explanation(False, (deciding,), refusal.code, refusal.remark, (path,))
    rulings = rules.rulings(identity, question.address, request)
    if rulings:
        allowing = tuple(DecidingRule(each.resource, each.decision.rule) for each in rulings)
    else:
        no_need = f"request code {question.code.value} needs no permission"
        allowing = (DecidingRule("", no_need),)
    rule = (allowing[0].rule,)
    path = _path(rules.checks, _allowed_by(identity, rule[0]), rulings, rule, is_allowed=True)
    return Explanation(True, allowing, paths=(path,))


#: The check that refuses, by reason of the refusal. Explained requests are readable and signed.
_REFUSED_BY: Final = {
    "no-account": Check.ACCOUNT,
    "unknown-account": Check.ACCOUNT,
    "disabled-account": Check.ACCOUNT,
    "bad-signature": Check.SIGNATURE,
    "admin-only": Check.ADMINISTRATOR,
    "no-permission": Check.PERMISSIONS,
    "unreadable": Check.PERMISSIONS,
}
_ESTABLISHED_BY: Final = {
    Established.WHITE_LIST: Check.WHITE_LIST,
    Established.ACCOUNT_WHITE_LIST: Check.ACCOUNT_WHITE_LIST,
}
#: Rules of administrators, who need no permission of their own.
_ADMINISTRATORS: Final = frozenset({"admin: true", "super user"})


def _allowed_by(identity: Identity, rule: str) -> Check:
    """The check that allows a request."""
    if rule in _ADMINISTRATORS:
        return Check.ADMINISTRATOR
    return _ESTABLISHED_BY.get(identity.how, Check.PERMISSIONS)


def _path(
    checks: Sequence[Check],
    decided_by: Check,
    rulings: Sequence[Ruling],
    rules: tuple[str, ...],
    *,
    is_allowed: bool = False,
) -> tuple[Step, ...]:
    """The checks in their order; those behind the deciding one are not reached."""
    place = checks.index(decided_by)
    steps = [Step(check, Outcome.PASSED) for check in checks[:place]]
    if decided_by is Check.PERMISSIONS and rulings:
        steps += _permission_steps(rulings)
    else:
        steps.append(
            Step(decided_by, Outcome.ALLOWED if is_allowed else Outcome.REFUSED, "", rules)
        )
    steps += [Step(check, Outcome.NOT_REACHED) for check in checks[place + 1 :]]
    return tuple(steps)


def _permission_steps(rulings: Sequence[Ruling]) -> Iterator[Step]:
    is_refused = False
    for resource, decision, matching in rulings:
        outcome = Outcome.ALLOWED if decision.is_allowed else Outcome.REFUSED
        shown = Outcome.NOT_REACHED if is_refused else outcome
        yield Step(Check.PERMISSIONS, shown, resource, matching or (decision.rule,))
        is_refused = is_refused or not decision.is_allowed


def _request(question: Question, identity: Identity | None) -> Request:
    """Return the request of a client, signed if the account has a key."""
    topic_field, group_field = EXPLAINED[question.code]
    named = {topic_field: question.topic, group_field: question.group}
    fields = {field: name for field, name in named.items() if field}
    fields[ACCESS_KEY] = question.account
    if identity is not None and identity.signing_key is not None:
        fields[SIGNATURE] = identity.signing_key.sign(signed_fields(fields))
    return Request(question.code, _VERSION, LanguageCode.JAVA, fields, b"")

"""Why an account may publish to a topic or consume from it: the decision and the deciding rules.

An explanation makes the request that a client would send, signs the request with the account's key
in the rules, and lets `Rules.admit` decide, as the gate does. Rules made from a broker's answers
have no keys of their own; any key does, because the same key signs and verifies. Pure.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from core_broker.auth.contracts import (
    Action,
    Identity,
    Refusal,
    Request,
    ResourceKind,
    Rules,
)
from core_broker.auth.signature import ACCESS_KEY, SIGNATURE, signed_fields
from core_broker.remoting.codes import LanguageCode, RequestCode, ResponseCode

#: RocketMQ's version number of 5.3.3; the rules do not depend on the version.
_VERSION = 479


class ExplainableRules(Rules, Protocol):
    """Rules that also know an account by name."""

    def identity_of(self, address: str, account: str) -> Identity:
        """Return the identity of a request with a right signature of the account; raises Refusal.

        `identify` is this and the check of the signature.
        """


class Question(NamedTuple):
    """May the account, from the address, publish to the topic, or consume from the topic?"""

    #: Access key of ACL 1.0, or user name of ACL 2.0.
    account: str
    #: IP address of the client.
    address: str
    topic: str
    #: The consumer group; "" asks about publishing.
    group: str = ""

    @property
    def code(self) -> RequestCode:
        """The code of the request that a client sends: a send or a pull."""
        return RequestCode.PULL_MESSAGE if self.group else RequestCode.SEND_MESSAGE_V2

    @property
    def needs(self) -> tuple[tuple[ResourceKind, str, Action], ...]:
        """The resources of the request, with the action."""
        if not self.group:
            return ((ResourceKind.TOPIC, self.topic, Action.PUB),)
        return (
            (ResourceKind.TOPIC, self.topic, Action.SUB),
            (ResourceKind.GROUP, self.group, Action.SUB),
        )


class DecidingRule(NamedTuple):
    """The rule that decides about a resource."""

    #: `Topic:name` or `Group:name`; "" if the account itself is refused.
    resource: str
    #: The rule as the operator wrote it, "no entry", or the reason of `Refusal`.
    rule: str


class Explanation(NamedTuple):
    """The decision about a question, with its reasons."""

    is_allowed: bool
    #: One rule per resource if allowed; the first refusing rule if refused.
    rules: tuple[DecidingRule, ...]
    #: RocketMQ's code and remark of the refusal; SUCCESS and "" when allowed.
    code: int = ResponseCode.SUCCESS
    remark: str = ""


def explain(rules: Sequence[ExplainableRules], question: Question) -> Explanation:
    """Decide as a gate with these rules, ACL 1.0 before ACL 2.0; at least one generation."""
    explanations = [_explain(each, question) for each in rules]
    refusals = [each for each in explanations if not each.is_allowed]
    if refusals:
        return refusals[-1]  # the gate answers the refusal of 2.0
    return Explanation(True, tuple(rule for each in explanations for rule in each.rules))


def _explain(rules: ExplainableRules, question: Question) -> Explanation:
    identity = None
    with suppress(Refusal):  # admit refuses an unknown account with the same remark
        identity = rules.identity_of(question.address, question.account)
    try:
        admitted = rules.admit(question.address, _request(question, identity))
    except Refusal as refusal:
        deciding = DecidingRule(refusal.resource, refusal.rule or refusal.reason)
        return Explanation(False, (deciding,), refusal.code, refusal.remark)
    deciding_rules = []
    for kind, name, action in question.needs:
        decision = rules.may(admitted, question.address, kind, name, action)
        rule = decision.rule
        if not decision.is_allowed:
            rule = f"request code {question.code.value} needs no permission"
        deciding_rules.append(DecidingRule(f"{kind}:{name}", rule))
    return Explanation(True, tuple(deciding_rules))


def _request(question: Question, identity: Identity | None) -> Request:
    """Return the request of a client, signed if the account has a key."""
    if question.group:
        fields = {"topic": question.topic, "consumerGroup": question.group}
    else:
        fields = {"b": question.topic}
    fields[ACCESS_KEY] = question.account
    if identity is not None and identity.signing_key is not None:
        fields[SIGNATURE] = identity.signing_key.sign(signed_fields(fields))
    return Request(question.code, _VERSION, LanguageCode.JAVA, fields, b"")

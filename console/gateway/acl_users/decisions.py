"""Questions about decisions: may an account publish, consume or administer, and why.

The rules of each broker come from its answers (`core_broker.client.admin.access_rules`); the code
of Gantry's brokers decides. A broker without an answer has an unknown decision.
"""

from dataclasses import dataclass
from typing import Final

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.acl_users.listing import user_tables
from console.gateway.brokers.listing import broker_refs, cluster_map, no_broker
from console.gateway.engine.answers import Partial, merge_failures
from console.gateway.engine.errors import ClusterUnreachable, Refused
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.processes import NoAccessControl, label
from core_broker.auth.contracts import Check
from core_broker.auth.explanation import (
    DecidingRule,
    Explanation,
    Generation,
    Outcome,
    Question,
    Step,
)
from core_broker.client.admin.access_rules import AccountsNotReturned, broker_rules
from core_broker.errors import ClientError
from core_broker.remoting.codes import ResponseCode

#: Maximum number of accounts that a form offers.
ACCOUNTS_OFFERED_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class CheckPath:
    """The checks of one generation of access control."""

    generation: Generation
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class BrokerDecision:
    """The decision of a broker process, with its reasons."""

    broker: str
    addr: str
    #: None: unknown, for the reason `unknown`.
    is_allowed: bool | None
    rules: tuple[DecidingRule, ...] = ()
    #: RocketMQ's code, its name, and remark of a refusal; None and "" otherwise.
    code: int | None = None
    code_name: str | None = None
    remark: str = ""
    paths: tuple[CheckPath, ...] = ()
    #: Resources of entries that cannot match, and are ignored.
    unreadable: tuple[str, ...] = ()
    unknown: object = None

    @property
    def has_user(self) -> bool:
        """Whether the account is a user of ACL 2.0 on this broker."""
        return any(
            path.generation is Generation.ACL2
            and all(
                step.outcome is not Outcome.REFUSED
                for step in path.steps
                if step.check is Check.ACCOUNT
            )
            for path in self.paths
        )


@question(fresh_for_ms=1_000)
async def access_decisions(
    session: ClusterSession, asked: Question
) -> Partial[tuple[BrokerDecision, ...]]:
    """The decision of each broker process, in the order of names."""
    listed = await session.ask(cluster_map)
    refs = sorted(await broker_refs(session))
    if not refs:
        raise no_broker(session)

    async def decide(ref: BrokerRef) -> BrokerDecision:
        try:
            found = await broker_rules(session.admin, ref.addr, asked.account)
        except AccountsNotReturned as error:
            return _unknown(
                ref,
                format_lazy(
                    _(
                        "The broker does not return its accounts (ACL 1.0): {remark} “mqadmin "
                        "checkAccess --aclFile” reads them from a copy of plain_acl.yml."
                    ),
                    remark=error.remark,
                ),
            )
        except ClientError as error:
            return _unknown(ref, str(error))
        return _decision(ref, found.explain(asked), found.generations, found.unreadable)

    found, failures = await session.fan_out(refs, decide, one_must_answer=False)
    reasons = {failure.addr: failure.reason for failure in failures}
    decisions = tuple(
        found[ref] if ref in found else _unknown(ref, reasons[ref.addr]) for ref in refs
    )
    return Partial(decisions, merge_failures(listed.failures, failures))


@question(fresh_for_ms=10_000)
async def known_accounts(session: ClusterSession) -> Partial[tuple[str, ...]]:
    """At most ACCOUNTS_OFFERED_MAX names of accounts, sorted; as far as the brokers answer."""
    try:
        users = await session.ask(user_tables)
    except (NoAccessControl, Refused, ClusterUnreachable):
        return Partial(())
    names = sorted({name for table in users.value.values() for name in table})
    return Partial(tuple(names[:ACCOUNTS_OFFERED_MAX]), users.failures)


def _decision(
    ref: BrokerRef,
    explanation: Explanation,
    generations: tuple[Generation, ...],
    unreadable: tuple[str, ...],
) -> BrokerDecision:
    refusal = None if explanation.is_allowed else ResponseCode(explanation.code)
    return BrokerDecision(
        label(ref),
        ref.addr,
        explanation.is_allowed,
        explanation.rules,
        refusal,
        None if refusal is None else refusal.name,
        explanation.remark,
        tuple(map(CheckPath, generations, explanation.paths)),
        unreadable,
    )


def _unknown(ref: BrokerRef, reason: object) -> BrokerDecision:
    return BrokerDecision(label(ref), ref.addr, None, unknown=reason)

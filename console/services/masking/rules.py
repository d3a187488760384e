"""Rules: reading, checks, changes.

A change must not show fields to the person who makes the change: whoever edits, disables or deletes
a rule needs `messages:unmasked` for the topics of the rule.
"""

from dataclasses import dataclass
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext_lazy as _

from console.accounts.custom_roles import Caller, check_held
from console.frame.permissions import STARS_MAX, Action, Permission
from console.frame.versions import locked, version_of
from console.gateway import NotFound, now_ms
from console.gateway.changes import check_unchanged
from console.gateway.messages.masks import (
    KINDS_WITH_EXPRESSION,
    MaskKind,
    MaskRule,
    check_expression,
)
from console.gateway.patterns import ANYTHING
from console.services.masking.models import MaskingRule

#: Maximum number of rules of the console.
RULES_MAX: Final = 200
GONE: Final = _("There is no such rule for this cluster.")


@dataclass(frozen=True, slots=True)
class Draft:
    """Values of a rule from a form, a body or a document."""

    name: str
    topic: str
    kind: str
    expression: str = ""
    note: str = ""
    enabled: bool = True
    all_clusters: bool = False


def enabled_rules(cluster: str) -> tuple[MaskRule, ...]:
    """Return the rules that `console.gateway` applies in a cluster."""
    rows = MaskingRule.objects.filter(cluster__in=["", cluster], enabled=True).order_by("pk")
    values = rows.values_list("topic", "kind", "expression")
    return tuple(MaskRule(topic, MaskKind(kind), text) for topic, kind, text in values)


def rules_of(cluster: str) -> list[MaskingRule]:
    return list(MaskingRule.objects.filter(cluster__in=["", cluster]))


def rule_numbered(cluster: str, number: int) -> MaskingRule:
    rows = MaskingRule.objects.filter(cluster__in=["", cluster], pk=number)
    found = rows.first() if number < 2**63 else None
    if found is None:
        raise NotFound(GONE)
    return found


def checked(draft: Draft) -> MaskRule:
    """Return the rule of a draft. Raises ValidationError with reasons by field."""
    wrong: dict[str, Any] = {}
    kind = MaskKind(draft.kind)
    if not draft.topic.strip() or " " in draft.topic or draft.topic.count(ANYTHING) > STARS_MAX:
        wrong["topic"] = _("A topic, or a pattern with at most eight “*” and without blanks.")
    expression = draft.expression if kind in KINDS_WITH_EXPRESSION else ""
    if kind in KINDS_WITH_EXPRESSION and not expression.strip():
        wrong["expression"] = _("A rule of this kind needs an expression.")
    elif kind in KINDS_WITH_EXPRESSION:
        try:
            check_expression(kind, expression)
        except ValueError as reason:
            wrong["expression"] = _WRONG[kind] % {"reason": reason}
    if wrong:
        raise ValidationError(wrong)
    return MaskRule(draft.topic, kind, expression)


_WRONG: Final = {
    MaskKind.JSON: _("Expected a JSON path, such as $.card.number, $.items[*].iban or $..card."),
    MaskKind.REGEX: _("Not a regular expression of RE2: %(reason)s"),
    MaskKind.PROPERTY: _("Brokers and the console need this property."),
}


def version(rule: MaskingRule) -> str:
    """Return the version of a rule for forms and as ETag."""
    return version_of(rule.name, rule.state)


@transaction.atomic
def save(
    by: Caller, rule: MaskingRule | None, draft: Draft, cluster: str, expected: str | None = None
) -> MaskingRule:
    """Create or change a rule.

    Raises ValidationError, NotAllowedNow, and PreconditionFailed when the rule has another version
    than `expected`.
    """
    plain = checked(draft)
    if rule is not None:
        rule = locked(rule, GONE)
        check_unchanged(expected, version(rule))
    if rule is None and MaskingRule.objects.count() >= RULES_MAX:
        raise ValidationError({"name": _("There are too many rules; delete one first.")})
    if rule is not None:
        check_may_show(by, rule)
    found = rule or MaskingRule()
    found.name, found.note, found.enabled = draft.name, draft.note, draft.enabled
    found.cluster = "" if draft.all_clusters else cluster
    found.topic, found.kind, found.expression = plain.topic, plain.kind.value, plain.expression
    found.changed_ms, found.changed_by = now_ms(), by.get_username()
    found.full_clean()
    found.save()
    return found


@transaction.atomic
def delete(by: Caller, rule: MaskingRule, expected: str | None = None) -> None:
    """Raises PreconditionFailed when the rule has another version than `expected`."""
    row = locked(rule, GONE)
    check_unchanged(expected, version(row))
    check_may_show(by, row)
    row.delete()


def check_may_show(by: Caller, rule: MaskingRule) -> None:
    """Raise NotAllowedNow for a caller to whom the rule's fields are masked."""
    clusters = rule.cluster or ANYTHING
    check_held(by, [Permission("messages", Action.UNMASKED, rule.topic, clusters)])

"""The section `masking`: rules of masked fields by name.

masking:
  Card numbers: {topic: orders-*, kind: json, expression: $..card}
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from django.http import HttpRequest
from rest_framework.request import Request

from console.areas.definitions.rule_sections import RuleKind
from console.frame.access import Need, check_may
from console.frame.permissions import Target
from console.services.masking.api import MaskingFields, read
from console.services.masking.models import MaskingRule
from console.services.masking.rules import Draft, checked, rules_of, save
from console.services.masking.views import RESOURCE, check_scope

_NAMES: Final = frozenset(MaskingFields().fields) - {"name"}


def _fields(rule: MaskingRule) -> dict[str, Any]:
    return {name: getattr(rule, name) for name in sorted(_NAMES)}


def _read(cluster: str, name: str, fields: Mapping[str, Any]) -> Draft:
    draft = read({**fields, "name": name})
    checked(draft)
    return draft


def _shown(draft: Draft) -> dict[str, Any]:
    return {name: value for name, value in asdict(draft).items() if name in _NAMES}


def _save(
    request: HttpRequest | Request, cluster: str, held: MaskingRule | None, draft: Draft
) -> None:
    check_may(request, Need.ADMIN, Target(RESOURCE, cluster))
    check_scope(request, draft.all_clusters, held)
    save(request.user, held, draft, cluster)


KIND: Final = RuleKind("masking", RESOURCE, rules_of, _fields, _read, _shown, _save)

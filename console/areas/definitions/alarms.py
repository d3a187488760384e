"""The section `alarms`: rules of alarms by name, with the names of their receivers.

    alarms:
      High lag: {source: metric, scope: group, metric: lag, threshold: 10000, severity: warning}

Receivers hold secrets and are no part of a document: a rule names receivers of this console.
"""

from collections.abc import Mapping
from typing import Any, Final

from django.http import HttpRequest
from rest_framework.request import Request

from console.areas.definitions.rule_sections import RuleKind
from console.frame.access import Need, check_may
from console.frame.permissions import Target
from console.services.alarms.models import AlarmRule, Receiver
from console.services.alarms.rules import rules_of, save
from console.services.alarms.rules_api import read
from console.services.alarms.scope import RESOURCE, check_scope
from console.services.alarms.serializers import RECEIVERS_OF_RULE_MAX, RuleFields
from core_broker.definitions.model import DefinitionsError

RECEIVERS: Final = "receivers"
ALL_CLUSTERS: Final = "all_clusters"
#: Fields of a request body that have the values of a stored rule.
_NAMES: Final = frozenset(RuleFields().fields) - {"name", ALL_CLUSTERS, RECEIVERS}

#: Values of a rule, and its receivers.
Draft = tuple[dict[str, Any], list[Receiver]]


def _fields(rule: AlarmRule) -> dict[str, Any]:
    values = {name: getattr(rule, name) for name in _NAMES}
    return {
        **{name: value for name, value in values.items() if value is not None},
        ALL_CLUSTERS: not rule.cluster,
        RECEIVERS: sorted(each.name for each in rule.receivers.all()),
    }


def _read(cluster: str, name: str, fields: Mapping[str, Any]) -> Draft:
    """Raises DefinitionsError for receivers."""
    names = fields.get(RECEIVERS) or []
    is_list = isinstance(names, list) and len(names) <= RECEIVERS_OF_RULE_MAX
    if not is_list or not all(isinstance(each, str) for each in names):
        text = "receivers is no list of at most {most} names."
        raise DefinitionsError(text, most=RECEIVERS_OF_RULE_MAX)
    known = {each.name: each for each in Receiver.objects.filter(name__in=names)}
    unknown = [each for each in names if each not in known]
    if unknown:
        raise DefinitionsError("This console has no receiver {names}.", names=", ".join(unknown))
    return read(cluster, {**fields, "name": name, RECEIVERS: [each.pk for each in known.values()]})


def _shown(draft: Draft) -> dict[str, Any]:
    values, receivers = draft
    shown = {key: value for key, value in values.items() if value is not None}
    del shown["name"]
    shown[ALL_CLUSTERS] = shown.pop("cluster") == ""
    return {**shown, RECEIVERS: sorted(each.name for each in receivers)}


def _save(
    request: HttpRequest | Request, cluster: str, held: AlarmRule | None, draft: Draft
) -> None:
    values, receivers = draft
    check_may(request, Need.WRITE, Target(RESOURCE, cluster))
    check_scope(request, Need.WRITE, values["cluster"], held.cluster if held else cluster)
    save(held, values, receivers, request.user.get_username())


KIND: Final = RuleKind("alarms", RESOURCE, rules_of, _fields, _read, _shown, _save)

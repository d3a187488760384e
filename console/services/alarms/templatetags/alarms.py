"""Tags of alarms for the pages of other areas: `{% load alarms %}`.

Alarms name other objects: a reader who may not read the alarms of the cluster gets nothing.
"""

from collections.abc import Mapping
from typing import Any

from django import template
from django.db.models import Q

from console.frame.access import may_read_all
from console.gateway import Cluster
from console.services.alarms import episodes
from console.services.alarms.forms import KINDS
from console.services.alarms.models import Delivery, Episode, Receiver
from console.services.alarms.titles import kept_title, title_of
from console.services.alarms.views import firing_context

register = template.Library()


@register.inclusion_tag("alarms/firing_frame.html", takes_context=True)
def alarms_firing(context: Mapping[str, Any], cluster: Cluster) -> dict[str, Any]:
    """Render the firing alarms, for the overview."""
    if not may_read_all(context["request"].user, "alarms", cluster.name):
        return {}
    return {"cluster": cluster, **firing_context(cluster.name)}


@register.inclusion_tag("alarms/object_frame.html", takes_context=True)
def alarms_of(context: Mapping[str, Any], cluster: Cluster, kind: str, name: str) -> dict[str, Any]:
    """Render the firing alarms of one object, for its page."""
    if not may_read_all(context["request"].user, "alarms", cluster.name):
        return {}
    rows = episodes.rows_of_object(cluster.name, kind, name)
    return {"cluster": cluster, "kind": kind, "name": name, "rows": rows}


@register.simple_tag
def has_receiver() -> bool:
    """Return whether any receiver gets notices of a rule."""
    wanted = Q(all_rules=True) | Q(rules__enabled=True)
    return Receiver.objects.filter(wanted, enabled=True).exists()


@register.simple_tag
def notified(episode: Episode) -> str:
    """Return the names of the receivers of an alarm's firing notice, separated by commas."""
    return ", ".join(episodes.receivers_of(episode))


@register.filter
def names_of(receivers: Mapping[int, list[str]], episode: Episode) -> str:
    """Return the names of the receivers of one alarm of a list, separated by commas."""
    return ", ".join(receivers.get(episode.pk, []))


@register.filter
def rule_title(delivery: Delivery) -> str:
    """Return the title of the rule of a notice."""
    return kept_title(delivery.rule_name, delivery.rule)


register.filter("title_of", title_of)
register.filter("alarm_kind", lambda value: KINDS.get(value, value))
register.filter("alarm_state", lambda value: episodes.SHOWN[value])

"""Tags of alarms for the pages of other areas: `{% load alarms %}`."""

from typing import Any

from django import template

from console.gateway import Cluster
from console.services.alarms import episodes
from console.services.alarms.forms import KINDS
from console.services.alarms.views import firing_context

register = template.Library()


@register.inclusion_tag("alarms/firing_frame.html")
def alarms_firing(cluster: Cluster) -> dict[str, Any]:
    """Render the firing alarms, for the overview."""
    return {"cluster": cluster, **firing_context(cluster.name)}


@register.inclusion_tag("alarms/object_frame.html")
def alarms_of(cluster: Cluster, kind: str, name: str) -> dict[str, Any]:
    """Render the firing alarms of one object, for its page."""
    rows = episodes.rows_of_object(cluster.name, kind, name)
    return {"cluster": cluster, "kind": kind, "name": name, "rows": rows}


register.filter("alarm_kind", lambda value: KINDS.get(value, value))
register.filter("alarm_state", lambda value: episodes.SHOWN[value])

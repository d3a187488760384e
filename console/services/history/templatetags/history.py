"""The charts of the history and the sparklines of lists, for pages of all areas."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from django import template
from django.conf import settings
from django.template import RequestContext

from console.gateway import now_ms
from console.services.history.charts import section_of
from console.services.history.metrics import BY_NAME, Scope, broker_name
from console.services.history.places import place_of
from console.services.history.sparklines import HEIGHT, Sparkline, read_sparklines
from console.services.history.store import STORE_ERRORS

log = logging.getLogger(__name__)
register = template.Library()


@register.inclusion_tag("history/charts.html", takes_context=True)
def history_charts(
    context: RequestContext, scope: Scope, name: str = "", number: int = 0, chart: str = ""
) -> dict[str, Any]:
    """Render the charts of a name over the range of the page's address, or one `chart` only."""
    request = context["request"]
    section = section_of(
        context["cluster"].name, scope, name, request.GET.dict(), number=number, chart=chart
    )
    return {"section": section, "request": request}


@register.simple_tag
def sparklines(
    cluster: Any, scope: Scope, metric: str, names: Iterable[str]
) -> Mapping[str, Sparkline]:
    """Return the lines of a page's rows by name, from one read; none when the history is not
    readable.
    """
    place = place_of(settings.GANTRY_HOME, cluster.name)
    try:
        return read_sparklines(place, BY_NAME[scope, metric], list(names), now_ms())
    except STORE_ERRORS as error:
        log.warning("no sparklines of %s: %s", cluster.name, error)
        return {}


@register.simple_tag
def broker_sparklines(cluster: Any, metric: str, refs: Iterable[Any]) -> Mapping[str, Sparkline]:
    """Return the lines of broker processes, as `sparklines` does."""
    return sparklines(cluster, "broker", metric, [broker_name(ref.name, ref.id) for ref in refs])


@register.inclusion_tag("history/sparkline.html")
def sparkline(
    lines: Mapping[str, Sparkline], name: str, color: str = "in", number: int = 0
) -> dict[str, Any]:
    """Render the line of a row; nothing for a name without samples. `number` is a broker's id."""
    return {"line": lines.get(broker_name(name, number)), "color": color, "height": HEIGHT}

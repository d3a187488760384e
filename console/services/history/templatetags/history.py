"""The charts of the history, for pages of all areas."""

from typing import Any

from django import template
from django.template import RequestContext

from console.services.history.charts import section_of
from console.services.history.metrics import Scope

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

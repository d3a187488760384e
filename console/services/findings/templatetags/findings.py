"""Tags and filters of findings: `{% load findings %}`.

The tags render the latest report without an evaluation, so that a page never waits; the rendered
part requests an evaluation by itself. Findings name other objects: a reader who may not read the
findings of the cluster gets nothing.
"""

from collections.abc import Mapping
from typing import Any

from django import template

from console.frame.access import may_read_all
from console.gateway import Cluster
from console.services.findings import listing
from console.services.findings.finding import Finding, Target
from console.services.findings.reports import latest_report
from console.services.findings.views import object_context, verdict_context

register = template.Library()


@register.inclusion_tag("findings/verdict_frame.html", takes_context=True)
def findings_verdict(context: Mapping[str, Any], cluster: Cluster) -> dict[str, Any]:
    """Render the verdict on a cluster, for the overview."""
    if not may_read_all(context["request"].user, "findings", cluster.name):
        return {}
    return {"cluster": cluster, **verdict_context(latest_report(cluster))}


@register.inclusion_tag("findings/object_frame.html", takes_context=True)
def findings_of(
    context: Mapping[str, Any], cluster: Cluster, kind: str, name: str
) -> dict[str, Any]:
    """Render the findings of one object, for the page of the object."""
    if not may_read_all(context["request"].user, "findings", cluster.name):
        return {}
    found = object_context(latest_report(cluster), kind, name)
    return {"cluster": cluster, "kind": kind, "name": name, **found}


@register.simple_tag
def finding_url(cluster: Cluster, finding: Finding) -> str:
    return listing.link_of(cluster.name, finding)


@register.simple_tag
def object_url(cluster: Cluster, target: Target) -> str:
    return listing.page_of(cluster.name, target)


register.filter("severity_title", lambda value: listing.SEVERITIES[value])
register.filter("kind_title", lambda value: listing.KIND_TITLES[value])
register.filter("evidence", listing.evidence_of)

"""REST resource of the area `findings`."""

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.paging import cut, list_parameters
from console.api.views import ClusterResource
from console.frame.tables import TableQuery
from console.services.findings import listing
from console.services.findings.finding import Severity, Verdict
from console.services.findings.reports import current_report
from console.services.findings.rules import RULES

CHOICES = {
    "severity": [each.value for each in Severity],
    "kind": list(listing.KIND_TITLES),
    "rule": [each.id for each in RULES],
}


class TargetSerializer(serializers.Serializer[Any]):
    """An object of the cluster. A slave's name is `<broker name>:<broker id>`."""

    kind = serializers.ChoiceField(choices=CHOICES["kind"])
    name = serializers.CharField()


class FindingSerializer(serializers.Serializer[Any]):
    """A problem of one object. `key` is stable over evaluations: rule, kind and name."""

    key = serializers.CharField()
    rule = serializers.ChoiceField(choices=CHOICES["rule"])
    severity = serializers.ChoiceField(
        choices=CHOICES["severity"],
        help_text="critical: messages are not delivered, or a broker is down. warning: will become "
        "so without action. advice: a risk.",
    )
    object = TargetSerializer(source="target")
    text = serializers.CharField(help_text="The problem, in the language of the request.")
    advice = serializers.CharField(help_text="What to do.")
    values = serializers.DictField(help_text="The evidence; units are in the names.")
    since_ms = serializers.IntegerField(
        allow_null=True, help_text="Start of the problem; null: the cluster does not report it."
    )
    as_of_ms = serializers.IntegerField(
        allow_null=True,
        help_text="Time of the evidence, when a broker does not answer and the evidence is its "
        "last one; null: the evidence is of this report.",
    )
    related = TargetSerializer(many=True)
    url = serializers.SerializerMethodField(help_text="Page of the object in this console.")

    def get_url(self, finding: Any) -> str:
        return listing.link_of(self.context["cluster"], finding)


class NotCheckedSerializer(serializers.Serializer[Any]):
    """What a rule could not check; `where` names a broker, or is empty."""

    where = serializers.CharField(allow_blank=True)
    reason = serializers.CharField()


class RuleResultSerializer(serializers.Serializer[Any]):
    """The result of one rule."""

    rule = serializers.ChoiceField(choices=CHOICES["rule"])
    title = serializers.CharField(help_text="What the rule checks; true when nothing was found.")
    findings = serializers.IntegerField()
    left_out = serializers.IntegerField(help_text="Findings that the list does not contain.")
    not_checked = NotCheckedSerializer(many=True)


class CountsSerializer(serializers.Serializer[Any]):
    """Number of findings by severity."""

    critical = serializers.IntegerField()
    warning = serializers.IntegerField()
    advice = serializers.IntegerField()


class FindingPageSerializer(serializers.Serializer[Any]):
    """One page of findings, and the verdict over all findings."""

    verdict = serializers.ChoiceField(
        choices=[each.value for each in Verdict],
        help_text="The worst severity. Without critical findings and warnings: `healthy` when all "
        "rules were checked, else `not-checked`.",
    )
    counts = CountsSerializer()
    taken_ms = serializers.IntegerField(
        help_text="Time of the evaluation; reports are shared for some seconds."
    )
    took_ms = serializers.IntegerField(help_text="Duration of the evaluation.")
    items = FindingSerializer(many=True)
    total = serializers.IntegerField()
    next_cursor = serializers.CharField(allow_null=True)
    checks = RuleResultSerializer(many=True)


class FindingList(ClusterResource):
    @extend_schema(
        parameters=list_parameters(
            listing.COLUMNS,
            *(OpenApiParameter(name, OpenApiTypes.STR, enum=CHOICES[name]) for name in CHOICES),
            OpenApiParameter("object", OpenApiTypes.STR, description="Name of the object."),
        ),
        responses=FindingPageSerializer,
    )
    def get(self, request: Request, cluster: str) -> Response:
        """Health findings of the cluster, worst first, and the result of every rule."""
        params = request.query_params
        for name, known in CHOICES.items():
            if params.get(name) and params[name] not in known:
                text = _("Expected one of: %(known)s") % {"known": ", ".join(known)}
                raise ValidationError({name: [text]})
        report = current_report(self.cluster)
        filters = {name: params.get(name, "") for name in CHOICES}
        found = listing.passing(report.findings, **filters, target=params.get("object", ""))
        matching = TableQuery.read(params, listing.COLUMNS, default="severity").matching(found)
        part = cut(params, listing.COLUMNS, matching, default="severity")
        body = {
            "verdict": report.verdict,
            "counts": report.counts,
            "taken_ms": report.taken_ms,
            "took_ms": report.took_ms,
            "items": part.rows,
            "total": part.total,
            "next_cursor": part.next_cursor,
            "checks": report.checks,
        }
        return Response(FindingPageSerializer(body, context={"cluster": cluster}).data)

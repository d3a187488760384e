"""REST resources of the rules of alarms."""

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError as WrongValues
from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.serializers import patched
from console.api.views import IF_MATCH, ClusterResource, expected_etag, tagged
from console.audit.recording import audited
from console.frame.access import Need
from console.gateway.changes import check_unchanged
from console.services.alarms import rules
from console.services.alarms.models import AlarmRule, Receiver
from console.services.alarms.scope import check_scope
from console.services.alarms.serializers import (
    AlarmRuleListSerializer,
    AlarmRuleSerializer,
    PreviewSerializer,
    RuleFields,
)


class AlarmRuleList(ClusterResource):
    actions = {"post": "alarm-rule.create"}

    @extend_schema(responses=AlarmRuleListSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """Rules of the cluster and of all clusters, by name."""
        return Response({"items": AlarmRuleSerializer(rules.rules_of(cluster), many=True).data})

    @extend_schema(request=RuleFields, responses={201: AlarmRuleSerializer})
    def post(self, request: Request, cluster: str) -> Response:
        """Create a rule: of this cluster, or of all clusters with `all_clusters`."""
        values, receivers = read(cluster, request.data)
        name = values["name"]
        check_scope(request, Need.WRITE, values["cluster"])
        with audited(request, "alarm-rule.create", cluster=cluster, target=name) as entry:
            rule = saved(None, values, receivers, request.user, None)
            entry.after = rules.state_of(rule)
        location = reverse("api-alarm-rule", kwargs={"cluster": cluster, "number": rule.pk})
        body, version = AlarmRuleSerializer(rule).data, rules.version(rule)
        return tagged(body, version, status.HTTP_201_CREATED, Location=location)


class AlarmRuleOne(ClusterResource):
    actions = {"patch": "alarm-rule.update", "delete": "alarm-rule.delete"}

    @extend_schema(responses=AlarmRuleSerializer)
    def get(self, request: Request, cluster: str, number: int) -> Response:
        """One rule."""
        rule = rules.rule_numbered(cluster, number)
        return tagged(AlarmRuleSerializer(rule).data, rules.version(rule))

    @extend_schema(
        parameters=[IF_MATCH], request=RuleFields(partial=True), responses=AlarmRuleSerializer
    )
    def patch(self, request: Request, cluster: str, number: int) -> Response:
        """Change fields of a rule. Alarms of a changed condition resolve, and begin anew."""
        rule = rules.rule_numbered(cluster, number)
        # The body gets the other fields of this version, so no other version may be replaced.
        version = rules.version(rule)
        check_unchanged(expected_etag(request), version)
        before = rules.state_of(rule)
        values, receivers = read(cluster, patched(RuleFields, body_of(rule), request.data))
        check_scope(request, Need.WRITE, rule.cluster, values["cluster"])
        about: dict[str, Any] = {"cluster": cluster, "target": rule.name, "before": before}
        with audited(request, "alarm-rule.update", **about) as entry:
            changed = saved(rule, values, receivers, request.user, version)
            entry.after = rules.state_of(changed)
        return tagged(AlarmRuleSerializer(changed).data, rules.version(changed))

    @extend_schema(parameters=[IF_MATCH], responses={204: None})
    def delete(self, request: Request, cluster: str, number: int) -> Response:
        """Delete a rule; its alarms resolve."""
        rule, expected = rules.rule_numbered(cluster, number), expected_etag(request)
        check_unchanged(expected, rules.version(rule))
        check_scope(request, Need.WRITE, rule.cluster)
        about: dict[str, Any] = {
            "cluster": cluster,
            "target": rule.name,
            "before": rules.state_of(rule),
        }
        with audited(request, "alarm-rule.delete", **about):
            rules.delete(rule, expected)
        return Response(status=status.HTTP_204_NO_CONTENT)


class AlarmRulePreview(ClusterResource):
    @extend_schema(request=RuleFields, responses=PreviewSerializer)
    def post(self, request: Request, cluster: str) -> Response:
        """The objects that meet the condition of a rule now; nothing is stored."""
        values, _receivers = read(cluster, request.data)
        try:
            return Response(PreviewSerializer(rules.preview(self.cluster, values)).data)
        except WrongValues as wrong:
            raise ValidationError(wrong.message_dict) from wrong


def read(cluster: str, data: Any) -> tuple[dict[str, Any], list[Receiver]]:
    """Return the values and the receivers of a body. Raises ValidationError."""
    serializer = RuleFields(data=data)
    serializer.is_valid(raise_exception=True)
    values = dict(serializer.validated_data)
    numbers = set(values.pop("receivers"))
    receivers = list(Receiver.objects.filter(pk__in=numbers))
    if len(receivers) != len(numbers):
        raise ValidationError({"receivers": [_("There is no such receiver.")]})
    values["cluster"] = "" if values.pop("all_clusters") else cluster
    return values, receivers


def saved(
    rule: AlarmRule | None,
    values: Mapping[str, Any],
    receivers: list[Receiver],
    user: Any,
    expected: str | None,
) -> AlarmRule:
    try:
        return rules.save(rule, values, receivers, user, expected)
    except WrongValues as wrong:
        raise ValidationError(wrong.message_dict) from wrong


def body_of(rule: AlarmRule) -> dict[str, Any]:
    """Return a stored rule as a request body."""
    return patched(RuleFields, AlarmRuleSerializer(rule).data, {})

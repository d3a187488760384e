"""REST resources of the rules of masks."""

from dataclasses import asdict
from typing import Any

from django.core.exceptions import ValidationError as WrongValues
from django.urls import reverse
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.serializers import BodySerializer, patched
from console.api.views import IF_MATCH, ClusterResource, expected_etag, tagged
from console.audit.recording import audited
from console.frame.access import Need, check_may, needs
from console.frame.permissions import Target
from console.gateway.changes import check_unchanged
from console.gateway.messages.masks import EXPRESSION_CHARS_MAX, MaskKind
from console.services.masking import rules
from console.services.masking.models import (
    NAME_CHARS_MAX,
    NOTE_CHARS_MAX,
    TOPIC_CHARS_MAX,
    MaskingRule,
)
from console.services.masking.preview import SAMPLE_CHARS_MAX, preview
from console.services.masking.views import check_scope


class MaskingFields(BodySerializer):
    """A rule: which fields of which topics are shown as `***`."""

    name = serializers.CharField(max_length=NAME_CHARS_MAX)
    topic = serializers.CharField(
        max_length=TOPIC_CHARS_MAX, help_text="Topic, or pattern with `*`."
    )
    kind = serializers.ChoiceField(choices=[each.value for each in MaskKind])
    expression = serializers.CharField(
        max_length=EXPRESSION_CHARS_MAX,
        default="",
        allow_blank=True,
        trim_whitespace=False,
        help_text="JSON path, RE2 expression or property name; empty for `body` and `keys`.",
    )
    note = serializers.CharField(max_length=NOTE_CHARS_MAX, default="", allow_blank=True)
    enabled = serializers.BooleanField(default=True)
    all_clusters = serializers.BooleanField(default=False)


class MaskingRuleSerializer(MaskingFields):
    """A stored rule."""

    id = serializers.IntegerField(source="pk")
    changed_ms = serializers.IntegerField()
    changed_by = serializers.CharField()


class MaskingRuleListSerializer(serializers.Serializer[Any]):
    items = MaskingRuleSerializer(many=True)


class MaskingPreviewFields(MaskingFields):
    """A rule, and what the preview reads."""

    name = serializers.CharField(max_length=NAME_CHARS_MAX, default="preview")
    sample = serializers.CharField(
        max_length=SAMPLE_CHARS_MAX, default="", allow_blank=True, trim_whitespace=False
    )
    sample_topic = serializers.CharField(max_length=TOPIC_CHARS_MAX, default="", allow_blank=True)


class MaskedSampleSerializer(serializers.Serializer[Any]):
    msg_id = serializers.CharField()
    offset_msg_id = serializers.CharField()
    body = serializers.CharField()


class MaskingPreviewSerializer(serializers.Serializer[Any]):
    """The sample after the rule, and the effect on the newest messages of `sample_topic`."""

    sample = serializers.CharField(allow_null=True)
    applies = serializers.BooleanField(help_text="The pattern of the rule fits `sample_topic`.")
    read = serializers.IntegerField(help_text="Messages read.")
    changed = serializers.IntegerField(help_text="Messages with masked fields.")
    whole = serializers.IntegerField(help_text="Messages with the body masked whole.")
    messages = MaskedSampleSerializer(many=True)


EXAMPLE = OpenApiExample(
    "Card numbers of orders",
    {"name": "Card numbers", "topic": "orders-*", "kind": "json", "expression": "$..card"},
    request_only=True,
)


class MaskingRuleList(ClusterResource):
    writes_cluster = False
    actions = {"post": "masking-rule.create"}

    @extend_schema(responses=MaskingRuleListSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """Rules of masked fields that apply to the cluster."""
        return Response({"items": MaskingRuleSerializer(rules.rules_of(cluster), many=True).data})

    @needs(Need.ADMIN)
    @extend_schema(
        request=MaskingFields, responses={201: MaskingRuleSerializer}, examples=[EXAMPLE]
    )
    def post(self, request: Request, cluster: str) -> Response:
        """Create a rule. Enabled rules apply at once, also to open live tails."""
        draft = read(request.data)
        check_scope(request, draft.all_clusters, None)
        with audited(request, "masking-rule.create", cluster=cluster, target=draft.name) as entry:
            rule = saved(request, None, draft, cluster, None)
            entry.after = rule.state
        location = reverse("api-masking-rule", kwargs={"cluster": cluster, "number": rule.pk})
        body, version = MaskingRuleSerializer(rule).data, rules.version(rule)
        return tagged(body, version, status.HTTP_201_CREATED, Location=location)


class MaskingRuleOne(ClusterResource):
    writes_cluster = False
    actions = {"patch": "masking-rule.update", "delete": "masking-rule.delete"}

    @extend_schema(responses=MaskingRuleSerializer)
    def get(self, request: Request, cluster: str, number: int) -> Response:
        """One rule of masked fields."""
        rule = rules.rule_numbered(cluster, number)
        return tagged(MaskingRuleSerializer(rule).data, rules.version(rule))

    @needs(Need.ADMIN)
    @extend_schema(
        parameters=[IF_MATCH], request=MaskingFields(partial=True), responses=MaskingRuleSerializer
    )
    def patch(self, request: Request, cluster: str, number: int) -> Response:
        """Change fields of a rule; needs `messages:unmasked` for the topics of the rule."""
        rule = rules.rule_numbered(cluster, number)
        # The body gets the other fields of this version, so no other version may be replaced.
        version = rules.version(rule)
        check_unchanged(expected_etag(request), version)
        draft = read(patched(MaskingFields, MaskingRuleSerializer(rule).data, request.data))
        check_scope(request, draft.all_clusters, rule)
        about: dict[str, Any] = {"cluster": cluster, "target": rule.name, "before": rule.state}
        with audited(request, "masking-rule.update", **about) as entry:
            changed = saved(request, rule, draft, rule.cluster or cluster, version)
            entry.after = changed.state
        return tagged(MaskingRuleSerializer(changed).data, rules.version(changed))

    @needs(Need.ADMIN)
    @extend_schema(parameters=[IF_MATCH], responses={204: None})
    def delete(self, request: Request, cluster: str, number: int) -> Response:
        """Delete a rule; needs `messages:unmasked` for the topics of the rule."""
        rule, expected = rules.rule_numbered(cluster, number), expected_etag(request)
        check_unchanged(expected, rules.version(rule))
        check_scope(request, not rule.cluster, rule)
        about: dict[str, Any] = {"cluster": cluster, "target": rule.name, "before": rule.state}
        with audited(request, "masking-rule.delete", **about):
            rules.delete(request.user, rule, expected)
        return Response(status=status.HTTP_204_NO_CONTENT)


@needs(Need.ADMIN)
class MaskingRulePreview(ClusterResource):
    writes_cluster = False

    @extend_schema(request=MaskingPreviewFields, responses=MaskingPreviewSerializer)
    def post(self, request: Request, cluster: str) -> Response:
        """Apply a rule to a sample and to the newest messages of a topic; store nothing."""
        asked = MaskingPreviewFields(data=request.data)
        asked.is_valid(raise_exception=True)
        fields = dict(asked.validated_data)
        sample, topic = fields.pop("sample"), fields.pop("sample_topic").strip()
        if topic:
            check_may(request, Need.READ, Target("messages", cluster, topic))
        try:
            rule = rules.checked(rules.Draft(**fields))
        except WrongValues as wrong:
            raise ValidationError(wrong.message_dict) from wrong
        return Response(asdict(preview(self.cluster, rule, sample, topic)))


def read(data: Any) -> rules.Draft:
    """Return the draft of a body. Raises ValidationError."""
    serializer = MaskingFields(data=data)
    serializer.is_valid(raise_exception=True)
    return rules.Draft(**serializer.validated_data)


def saved(
    request: Request,
    rule: MaskingRule | None,
    draft: rules.Draft,
    cluster: str,
    expected: str | None,
) -> MaskingRule:
    try:
        return rules.save(request.user, rule, draft, cluster, expected)
    except WrongValues as wrong:
        raise ValidationError(wrong.message_dict) from wrong

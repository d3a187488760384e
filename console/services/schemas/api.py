"""REST resources of body schemas and their rules."""

import base64
import binascii
from typing import Any

from django.core.exceptions import ValidationError as WrongValues
from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.serializers import BodySerializer
from console.api.views import IF_MATCH, ClusterResource, expected_etag, tagged
from console.audit.recording import audited
from console.gateway.changes import check_unchanged
from console.gateway.messages.schemas.bounds import SCHEMA_BYTES_MAX
from console.gateway.messages.schemas.decoder import Format
from console.gateway.messages.schemas.framing import Framing
from console.services.schemas import stored
from console.services.schemas.models import (
    NAME_CHARS_MAX,
    TOPIC_CHARS_MAX,
    TYPE_CHARS_MAX,
    BodyRule,
    BodySchema,
)
from console.services.schemas.stored import RuleDraft

FORMATS = [each.value for each in Format]
FRAMINGS = [each.value for each in Framing]


class BodySchemaSerializer(serializers.Serializer[Any]):
    """A schema without its content."""

    name = serializers.CharField()
    format = serializers.ChoiceField(choices=FORMATS)
    sha256 = serializers.CharField(source="digest", help_text="SHA-256 of the content.")
    size_bytes = serializers.IntegerField()
    type_count = serializers.IntegerField(help_text="Number of message types.")
    changed_ms = serializers.IntegerField()
    changed_by = serializers.CharField()


class BodySchemaListSerializer(serializers.Serializer[Any]):
    items = BodySchemaSerializer(many=True)


class BodySchemaDetailSerializer(BodySchemaSerializer):
    """A schema with its message types."""

    types = serializers.SerializerMethodField()

    def get_types(self, schema: BodySchema) -> list[str]:
        return list(stored.types_of(schema))


class BodySchemaFields(BodySerializer):
    """The content of a schema."""

    format = serializers.ChoiceField(choices=FORMATS)
    content_base64 = serializers.CharField(
        max_length=SCHEMA_BYTES_MAX * 3 // 2,
        help_text="Protobuf: a FileDescriptorSet (`protoc --include_imports "
        "--descriptor_set_out=FILE`), or a source. Avro: a schema in JSON. At most 1 MiB before "
        "Base64.",
    )
    is_source = serializers.BooleanField(
        default=False,
        help_text="Protobuf: the content is a `.proto` file, or a ZIP archive of `.proto` files "
        "that import each other by their paths in the archive. The console compiles the source "
        "and stores the descriptor set.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["is_source"] and attrs["format"] != Format.PROTOBUF:
            raise ValidationError({"is_source": [_("Only Protobuf has sources to compile.")]})
        return attrs


class BodyRuleFields(BodySerializer):
    """A rule: bodies of topics are decoded by a schema."""

    topic = serializers.CharField(
        max_length=TOPIC_CHARS_MAX, help_text="A topic, or a pattern with `*`."
    )
    schema = serializers.CharField(max_length=NAME_CHARS_MAX, help_text="Name of a body schema.")
    type_name = serializers.CharField(
        max_length=TYPE_CHARS_MAX,
        allow_blank=True,
        default="",
        help_text="Full name of the message type; empty for an Avro schema as a whole.",
    )
    framing = serializers.ChoiceField(choices=FRAMINGS, default=Framing.RAW.value)


class BodyRuleSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField(source="pk")
    topic = serializers.CharField()
    schema = serializers.CharField(source="schema.name")
    type_name = serializers.CharField()
    framing = serializers.ChoiceField(choices=FRAMINGS)
    changed_ms = serializers.IntegerField()
    changed_by = serializers.CharField()


class BodyRuleListSerializer(serializers.Serializer[Any]):
    items = BodyRuleSerializer(many=True)


class BodySchemaList(ClusterResource):
    @extend_schema(responses=BodySchemaListSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """Schemas of message bodies."""
        return Response(BodySchemaListSerializer({"items": stored.schemas_of(cluster)}).data)


class BodySchemaOne(ClusterResource):
    actions = {"put": "body-schema.update", "delete": "body-schema.delete"}
    writes_cluster = False

    @extend_schema(responses=BodySchemaDetailSerializer)
    def get(self, request: Request, cluster: str, schema: str) -> Response:
        """A schema of message bodies with its types."""
        return _tagged(stored.schema_named(cluster, schema))

    @extend_schema(
        parameters=[IF_MATCH], request=BodySchemaFields, responses=BodySchemaDetailSerializer
    )
    def put(self, request: Request, cluster: str, schema: str) -> Response:
        """Create or replace a schema of message bodies."""
        fields = BodySchemaFields(data=request.data)
        fields.is_valid(raise_exception=True)
        given = fields.validated_data
        try:
            content = base64.b64decode(given["content_base64"], validate=True)
        except (binascii.Error, ValueError) as fault:
            raise ValidationError({"content_base64": [_("Not Base64.")]}) from fault
        expected = _expected_schema(request, cluster, schema)
        with audited(request, "body-schema.update", cluster=cluster, target=schema) as entry:
            try:
                saved = stored.save_schema(
                    cluster,
                    schema,
                    given["format"],
                    content,
                    request.user,
                    is_source=given["is_source"],
                    expected=expected,
                )
            except WrongValues as wrong:
                raise ValidationError(wrong.message_dict) from wrong
            entry.after = saved.state
        return _tagged(saved)

    @extend_schema(parameters=[IF_MATCH], responses={204: None})
    def delete(self, request: Request, cluster: str, schema: str) -> Response:
        """Delete a schema that no rule uses."""
        found = stored.schema_named(cluster, schema)
        expected = expected_etag(request)
        check_unchanged(expected, stored.schema_version(found))
        about: dict[str, Any] = {"cluster": cluster, "target": schema, "before": found.state}
        with audited(request, "body-schema.delete", **about):
            stored.delete_schema(found, expected)
        return Response(status=status.HTTP_204_NO_CONTENT)


class BodyRuleList(ClusterResource):
    actions = {"post": "body-rule.create"}
    writes_cluster = False

    @extend_schema(responses=BodyRuleListSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """Rules that decode message bodies by schemas."""
        return Response(BodyRuleListSerializer({"items": stored.rules_of(cluster)}).data)

    @extend_schema(request=BodyRuleFields, responses={201: BodyRuleSerializer})
    def post(self, request: Request, cluster: str) -> Response:
        """Create a rule that decodes message bodies."""
        saved = _saved(request, "body-rule.create", cluster, None)
        location = reverse("api-body-rule", kwargs={"cluster": cluster, "number": saved.pk})
        body, version = BodyRuleSerializer(saved).data, stored.version(saved)
        return tagged(body, version, status.HTTP_201_CREATED, Location=location)


class BodyRuleOne(ClusterResource):
    actions = {"put": "body-rule.update", "delete": "body-rule.delete"}
    writes_cluster = False

    @extend_schema(responses=BodyRuleSerializer)
    def get(self, request: Request, cluster: str, number: int) -> Response:
        """One rule that decodes message bodies."""
        rule = stored.rule_numbered(cluster, number)
        return tagged(BodyRuleSerializer(rule).data, stored.version(rule))

    @extend_schema(parameters=[IF_MATCH], request=BodyRuleFields, responses=BodyRuleSerializer)
    def put(self, request: Request, cluster: str, number: int) -> Response:
        """Replace a rule that decodes message bodies."""
        rule = stored.rule_numbered(cluster, number)
        check_unchanged(expected_etag(request), stored.version(rule))
        saved = _saved(request, "body-rule.update", cluster, rule)
        return tagged(BodyRuleSerializer(saved).data, stored.version(saved))

    @extend_schema(parameters=[IF_MATCH], responses={204: None})
    def delete(self, request: Request, cluster: str, number: int) -> Response:
        """Delete a rule that decodes message bodies."""
        rule, expected = stored.rule_numbered(cluster, number), expected_etag(request)
        check_unchanged(expected, stored.version(rule))
        about: dict[str, Any] = {"cluster": cluster, "target": rule.topic, "before": rule.state}
        with audited(request, "body-rule.delete", **about):
            stored.delete_rule(rule, expected)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _tagged(schema: BodySchema) -> Response:
    return tagged(BodySchemaDetailSerializer(schema).data, stored.schema_version(schema))


def _expected_schema(request: Request, cluster: str, name: str) -> str | None:
    """Return the version that a PUT expects; 412 for another one.

    `*` expects any version, but not a schema that does not exist.
    """
    found = stored.schema_or_none(cluster, name)
    current = stored.schema_version(found)
    expected = expected_etag(request)
    if found is None and request.headers.get("If-Match", "").strip() == "*":
        expected = "*"
    check_unchanged(expected, current)
    return expected


def _saved(request: Request, action: str, cluster: str, rule: BodyRule | None) -> BodyRule:
    fields = BodyRuleFields(data=request.data)
    fields.is_valid(raise_exception=True)
    draft = RuleDraft(**fields.validated_data)
    before, expected = (rule.state, expected_etag(request)) if rule else (None, None)
    with audited(request, action, cluster=cluster, target=draft.topic, before=before) as entry:
        try:
            saved = stored.save_rule(cluster, rule, draft, request.user, expected)
        except WrongValues as wrong:
            raise ValidationError(wrong.message_dict) from wrong
        entry.after = saved.state
    return saved

"""REST resource of the labels of a topic or group."""

from typing import Any

from django.core.exceptions import ValidationError as WrongValues
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.flags import DRY_RUN, dry_run_body, read_flag
from console.api.serializers import BodySerializer, DryRunSerializer, FieldChangeSerializer
from console.api.views import IF_MATCH, expected_etag, tagged
from console.audit.recording import audited
from console.gateway.changes import check_unchanged
from console.resources import labels
from console.resources.api import KindResource
from console.resources.labels import LABELS_MAX, VALUE_CHARS_MAX
from console.resources.resource import Resource

LABELS_HELP = (
    "Labels by key. A key fits `[a-z][a-z0-9._-]{0,39}`, a value has 1 to 200 visible characters."
)


class StoredLabelsField(serializers.DictField):
    """Labels of an object in lists and details."""

    def __init__(self, **given: Any) -> None:
        super().__init__(
            child=serializers.CharField(max_length=VALUE_CHARS_MAX), help_text=LABELS_HELP, **given
        )


@extend_schema_field(
    {
        "type": "object",
        "maxProperties": LABELS_MAX,
        "additionalProperties": {"type": "string", "minLength": 1, "maxLength": VALUE_CHARS_MAX},
    }
)
class LabelsField(serializers.Field[Any, Any, Any, Any]):
    """A map of labels, checked by `labels.checked`."""

    def to_internal_value(self, data: Any) -> dict[str, str]:
        if not isinstance(data, dict):
            raise ValidationError(_("Expected an object."))
        try:
            return labels.checked(data)
        except WrongValues as wrong:
            raise ValidationError(wrong.messages) from wrong

    def to_representation(self, value: dict[str, str]) -> dict[str, str]:
        return value


class LabelsFields(BodySerializer):
    """All labels of an object; labels that the body lacks are removed."""

    labels = LabelsField(help_text=LABELS_HELP)


class LabelsSerializer(serializers.Serializer[Any]):
    """The labels of an object. The `ETag` header identifies them; send the value in `If-Match`."""

    name = serializers.CharField()
    labels = StoredLabelsField()
    dry_run = serializers.BooleanField(
        required=False, help_text="Present and true in the answer of a dry run."
    )
    changes = FieldChangeSerializer(
        many=True, required=False, help_text="Of a dry run, by key; `broker` is empty."
    )


EXAMPLE = OpenApiExample(
    "Who owns it",
    {"labels": {"owner": "ann@example.org", "team": "payments", "tier": "gold"}},
    request_only=True,
)


class Labels(KindResource):
    """Labels of an object of a kind."""

    verbs = {"put": "label", "delete": "unlabel"}

    @extend_schema(responses=LabelsSerializer)
    def get(self, request: Request, cluster: str, name: str) -> Response:
        """Labels of a resource."""
        self.resource.configs(self.cluster, name)  # 404 for an object that does not exist
        return _tagged(name, labels.labels_of(cluster, self.resource.kind, name))

    @extend_schema(
        parameters=[IF_MATCH, DRY_RUN],
        request=LabelsFields,
        responses=LabelsSerializer,
        examples=[EXAMPLE],
    )
    def put(self, request: Request, cluster: str, name: str) -> Response:
        """Replace all labels of a resource. Labels are kept by the console, not by the brokers.

        With `dry_run`, the response has the labels that the change would store, and the changes.
        """
        fields = LabelsFields(data=request.data)
        fields.is_valid(raise_exception=True)
        self.resource.configs(self.cluster, name)
        return self._changed(request, name, "label", fields.validated_data["labels"])

    @extend_schema(parameters=[IF_MATCH, DRY_RUN], responses={200: DryRunSerializer, 204: None})
    def delete(self, request: Request, cluster: str, name: str) -> Response:
        """Delete all labels of a resource, also those that a deleted resource has left."""
        if not labels.labels_of(cluster, self.resource.kind, name):
            self.resource.configs(self.cluster, name)
        return self._changed(request, name, "unlabel", {})

    def _changed(self, request: Request, name: str, verb: str, wanted: dict[str, str]) -> Response:
        cluster, kind, expected = self.cluster.name, self.resource.kind, expected_etag(request)
        before = labels.labels_of(cluster, kind, name)
        check_unchanged(expected, labels.version(before))
        if read_flag(request, "dry_run"):
            body = dry_run_body(name, labels.differences(before, wanted))
            return Response(body if verb == "unlabel" else {**body, "labels": wanted})
        about: dict[str, Any] = {"cluster": cluster, "target": name, "before": before}
        with audited(request, self.resource.action(verb), **about) as entry:
            by = request.user.get_username()
            entry.after = labels.change(cluster, kind, name, by, lambda _held: wanted, expected)
        if verb == "unlabel":
            return Response(status=status.HTTP_204_NO_CONTENT)
        return _tagged(name, wanted)


def _tagged(name: str, found: dict[str, str]) -> Response:
    return tagged({"name": name, "labels": found}, labels.version(found))


def label_urls(resource: Resource) -> list[URLPattern]:
    """The URL of the labels of a kind of resource."""
    one, many = resource.argument, resource.path
    return [path(f"{many}/<name:name>/labels", Labels.of(resource), name=f"api-{one}-labels")]

"""The REST resource of definitions: export, dry run, application, copy from another cluster."""

from collections import Counter
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.flags import DRY_RUN, read_flag
from console.api.serializers import BodySerializer, FieldChangeSerializer
from console.api.views import ClusterResource
from console.areas.definitions.planning import Applied, apply, export_text, plan
from console.areas.definitions.reader import Reader
from console.areas.definitions.requests import may_copy
from console.frame.access import Need, needs
from core_broker.definitions.comparing import Action
from core_broker.definitions.model import DOCUMENT_BYTES_MAX

RESULTS = ["created", "updated", "same", "extra", "failed", "would create", "would update"]


class DefinitionsSerializer(serializers.Serializer[Any]):
    """The definitions of a cluster. Equal definitions give equal texts."""

    definitions = serializers.CharField(help_text="A YAML document; see `docs/mqadmin.md`.")
    notes = serializers.ListField(child=serializers.CharField(), help_text="Missing parts.")


class DefinitionsBodySerializer(BodySerializer):
    """A document, or the cluster whose definitions are copied."""

    definitions = serializers.CharField(
        required=False,
        max_length=DOCUMENT_BYTES_MAX,
        trim_whitespace=False,
        help_text="A YAML or JSON document, at most 4 MiB.",
    )
    from_cluster = serializers.CharField(
        required=False, max_length=255, help_text="Name of a cluster of this console."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("definitions" in attrs) == ("from_cluster" in attrs):
            raise ValidationError(_("Give either definitions or from_cluster."))
        return attrs


class DefinitionItemSerializer(serializers.Serializer[Any]):
    """An object of the document, or only of the cluster (`extra`)."""

    kind = serializers.CharField()
    name = serializers.CharField()
    result = serializers.ChoiceField(choices=RESULTS)
    error = serializers.CharField(allow_null=True)
    changes = FieldChangeSerializer(many=True)


class DefinitionItemsSerializer(serializers.Serializer[Any]):
    """One result per object."""

    dry_run = serializers.BooleanField()
    drift = serializers.BooleanField(
        help_text="True when the cluster lacked or contradicted a part of the document."
    )
    counts = serializers.DictField(child=serializers.IntegerField())
    notes = serializers.ListField(child=serializers.CharField())
    items = DefinitionItemSerializer(many=True)


@needs(Need.ADMIN)
class DefinitionsResource(ClusterResource):
    @extend_schema(responses=DefinitionsSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """Topics, groups, permissions without passwords, alarm rules, labels, masking rules and
        protection as YAML. A part that the account may not read is left out; `notes` names the
        parts."""
        text, notes = export_text(Reader(request.user, cluster))
        return Response({"definitions": text, "notes": list(notes)})

    @extend_schema(
        parameters=[DRY_RUN],
        request=DefinitionsBodySerializer,
        responses={200: DefinitionItemsSerializer, 207: DefinitionItemsSerializer},
    )
    def post(self, request: Request, cluster: str) -> Response:
        """Create and change what differs from a document, or from another cluster; one result per
        object. Nothing is deleted except entries of a list in `acls`."""
        body = DefinitionsBodySerializer(data=request.data)
        body.is_valid(raise_exception=True)
        text = body.validated_data.get("definitions")
        if text is None:
            source = body.validated_data["from_cluster"]
            if not may_copy(request, source):
                raise PermissionDenied(_("You may not export the definitions of this cluster."))
            text = export_text(Reader(request.user, source))[0]
        planned = plan(Reader(request.user, cluster), text)
        dry_run = read_flag(request, "dry_run")
        if dry_run:
            results = [Applied(item, _would(item.action), item.problem) for item in planned.items]
        else:
            results = apply(request, self.cluster, planned)
        items = [
            {
                "kind": each.item.kind,
                "name": each.item.name,
                "result": each.result,
                "error": each.error or None,
                "changes": FieldChangeSerializer(each.item.changes, many=True).data,
            }
            for each in results
        ]
        failed = not dry_run and any(each.error for each in results)
        return Response(
            {
                "dry_run": dry_run,
                "drift": bool(planned.drift),
                "counts": dict(Counter(each.result for each in results)),
                "notes": list(planned.notes),
                "items": items,
            },
            status.HTTP_207_MULTI_STATUS if failed else status.HTTP_200_OK,
        )


def _would(action: Action) -> str:
    words = {
        Action.CREATE: "would create",
        Action.UPDATE: "would update",
        Action.PROBLEM: "failed",
    }
    return words.get(action, action.value)

"""REST resource of brokers' settings: compared over the cluster, changed with a dry run first."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.flags import DRY_RUN, dry_run_body, read_flag
from console.api.serializers import AnsweredSerializer, BodySerializer, OutcomesSerializer
from console.api.views import IF_MATCH, ClusterResource, expected_etag, told_with
from console.audit.recording import audited
from console.frame.access import Need, needs
from console.gateway.brokers.settings import (
    VALUE_CHARS_MAX,
    Setting,
    broker_settings,
    change_settings,
    check_changeable,
    differences,
)
from console.gateway.changes import check_unchanged
from console.resources import history
from console.resources.models import Kind
from console.services.clusters.configuration import SHOW, passing
from console.services.clusters.setting_docs import meanings

KEYS_MAX = 100
KEY_CHARS_MAX = 255


class SettingSerializer(serializers.Serializer[Any]):
    """One key over all brokers; a secret's value is hidden."""

    name = serializers.CharField()
    values = serializers.DictField(child=serializers.CharField(), help_text="By broker.")
    default = serializers.CharField(allow_null=True, help_text="Gantry's; null for other keys.")
    differs = serializers.BooleanField()
    own = serializers.BooleanField(help_text="It says who or where the broker is, so it differs.")
    changeable = serializers.BooleanField()
    meaning = serializers.SerializerMethodField(help_text="From Gantry's documentation.")

    def get_meaning(self, setting: Setting) -> str | None:
        return meanings().get(setting.name)


class SettingsSerializer(AnsweredSerializer):
    brokers = serializers.ListField(child=serializers.CharField())
    items = SettingSerializer(many=True)


class SettingsPatchSerializer(BodySerializer):
    """New values by key; every broker takes all of them or none."""

    settings = serializers.DictField(
        child=serializers.CharField(max_length=VALUE_CHARS_MAX, allow_blank=True), allow_empty=False
    )
    brokers = serializers.ListField(
        child=serializers.CharField(max_length=KEY_CHARS_MAX),
        required=False,
        max_length=1_000,
        help_text="Only these brokers; all when left out.",
    )

    def validate_settings(self, value: dict[str, str]) -> dict[str, str]:
        if len(value) > KEYS_MAX or any(len(key) > KEY_CHARS_MAX for key in value):
            raise serializers.ValidationError(f"Up to {KEYS_MAX} keys.")
        return value


class BrokerSettings(ClusterResource):
    actions = {"patch": "broker.configure"}

    @extend_schema(
        parameters=[
            OpenApiParameter("q", OpenApiTypes.STR, description="Words in key, value or meaning."),
            OpenApiParameter("show", OpenApiTypes.STR, enum=list(SHOW)),
        ],
        responses=SettingsSerializer,
    )
    def get(self, request: Request, cluster: str) -> Response:
        """Every key with its value on each broker. `ETag` names this state."""
        answer = self.cluster.ask(broker_settings)
        params = request.query_params
        found = passing(answer.value, params.get("show", ""), params.get("q", "")[:KEY_CHARS_MAX])
        items = SettingSerializer(found, many=True).data
        body = {"brokers": answer.value.brokers, "items": items, **told_with(answer)}
        return Response(body, headers={"ETag": f'"{answer.value.etag}"'})

    @extend_schema(
        parameters=[IF_MATCH, DRY_RUN],
        request=SettingsPatchSerializer,
        responses={200: OutcomesSerializer, 207: OutcomesSerializer},
    )
    @needs(Need.ADMIN)
    def patch(self, request: Request, cluster: str) -> Response:
        """Change keys that may change while brokers run; brokers judge the values."""
        form = SettingsPatchSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        wanted, brokers = form.validated_data["settings"], form.validated_data.get("brokers")
        state = self.cluster.ask(broker_settings).value
        names = ", ".join(sorted(wanted))
        before = {one.name: dict(one.values) for one in state.settings if one.name in wanted}
        act: dict[str, Any] = {"cluster": cluster, "target": names, "before": before}
        if read_flag(request, "dry_run"):
            check_changeable(wanted)
            check_unchanged(expected_etag(request), state.etag)
            return Response(dry_run_body(names, differences(state, wanted, brokers)))
        with audited(request, "broker.configure", **act) as entry:
            check_changeable(wanted)
            lines = differences(state, wanted, brokers)
            etag = expected_etag(request)
            outcomes = self.cluster.do(change_settings, wanted, brokers, etag)
            entry.after = wanted
            entry.outcomes(outcomes)
        for key in wanted:
            of_key = [line for line in lines if line.field == key]
            history.keep(request.user, cluster, Kind.BROKER, key, of_key, outcomes)
        return self.changed(names, outcomes)

"""REST resource of broker settings: comparison over the cluster, changes with dry run."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.flags import DRY_RUN, dry_run_body, read_flag
from console.api.serializers import AnsweredSerializer, BodySerializer, outcomes_or_dry_run
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
from console.gateway.changes import changed_values, check_unchanged
from console.resources import history
from console.resources.models import Kind
from console.services.clusters.configuration import FILTERS, matching
from console.services.clusters.setting_docs import meanings

KEYS_MAX = 100
KEY_CHARS_MAX = 255


class SettingSerializer(serializers.Serializer[Any]):
    """One setting with the values of all brokers; values of secrets are hidden."""

    name = serializers.CharField()
    values = serializers.DictField(child=serializers.CharField(), help_text="By broker.")
    default = serializers.CharField(
        allow_null=True, help_text="Default of Gantry; null for unknown keys."
    )
    differs = serializers.BooleanField()
    own = serializers.BooleanField(help_text="Identity or address of the broker; always differs.")
    changeable = serializers.BooleanField()
    meaning = serializers.SerializerMethodField(
        help_text="From Gantry's documentation; null for keys whose effect differs on brokers of "
        "Apache RocketMQ, if the cluster has such brokers."
    )

    def get_meaning(self, setting: Setting) -> str | None:
        return meanings(apache=self.context["apache"]).get(setting.name)


class SettingsSerializer(AnsweredSerializer):
    brokers = serializers.ListField(child=serializers.CharField())
    items = SettingSerializer(many=True)


class SettingsPatchSerializer(BodySerializer):
    """New values by key; a broker applies all of the values or none."""

    settings = serializers.DictField(
        child=serializers.CharField(max_length=VALUE_CHARS_MAX, allow_blank=True), allow_empty=False
    )
    brokers = serializers.ListField(
        child=serializers.CharField(max_length=KEY_CHARS_MAX),
        required=False,
        max_length=1_000,
        help_text="Broker names; all brokers if absent.",
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
            OpenApiParameter("show", OpenApiTypes.STR, enum=list(FILTERS)),
        ],
        responses=SettingsSerializer,
    )
    def get(self, request: Request, cluster: str) -> Response:
        """Every setting with the value of each broker. `ETag` identifies the state."""
        answer = self.cluster.ask(broker_settings)
        params = request.query_params
        settings = matching(
            answer.value, params.get("show", ""), params.get("q", "")[:KEY_CHARS_MAX]
        )
        context = {"apache": bool(answer.value.apache)}
        items = SettingSerializer(settings, many=True, context=context).data
        body = {"brokers": answer.value.brokers, "items": items, **told_with(answer)}
        return Response(body, headers={"ETag": f'"{answer.value.etag}"'})

    @extend_schema(
        parameters=[IF_MATCH, DRY_RUN],
        request=SettingsPatchSerializer,
        responses=outcomes_or_dry_run(),
    )
    @needs(Need.ADMIN)
    def patch(self, request: Request, cluster: str) -> Response:
        """Change settings of running brokers; the brokers validate the values."""
        form = SettingsPatchSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        new_values, brokers = form.validated_data["settings"], form.validated_data.get("brokers")
        state = self.cluster.ask(broker_settings).value
        names = ", ".join(sorted(new_values))
        before = {
            setting.name: dict(setting.values)
            for setting in state.settings
            if setting.name in new_values
        }
        audit_fields: dict[str, Any] = {"cluster": cluster, "target": names, "before": before}
        if read_flag(request, "dry_run"):
            check_changeable(new_values)
            check_unchanged(expected_etag(request), state.etag)
            return Response(dry_run_body(names, differences(state, new_values, brokers)))
        with audited(request, "broker.configure", **audit_fields) as entry:
            check_changeable(new_values)
            lines = differences(state, new_values, brokers)
            etag = expected_etag(request)
            outcomes = self.cluster.do(change_settings, new_values, brokers, etag)
            entry.after = changed_values(before, lines)
            entry.outcomes(outcomes)
        for key in new_values:
            of_key = [line for line in lines if line.field == key]
            history.keep(request.user, cluster, Kind.BROKER, key, of_key, outcomes)
        return self.changed(names, outcomes)

"""Page and REST resource of the read-only state of a cluster, and the state in the database.

The setting CONSOLE_READ_ONLY_CLUSTERS takes precedence: the page cannot end such a state.
"""

from dataclasses import asdict, dataclass
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.serializers import BodySerializer
from console.api.views import IF_MATCH, ClusterResource, expected_etag, tagged
from console.audit.recording import audited
from console.frame.access import Need, needs
from console.frame.forms import TablerForm
from console.frame.pages import ClusterPage
from console.frame.versions import version_of
from console.gateway import Cluster, NotAllowedNow, now_ms
from console.gateway.changes import check_unchanged
from console.services.clusters.models import REASON_CHARS_MAX, ReadOnlyCluster

TURN_ON = "cluster.read-only.on"
TURN_OFF = "cluster.read-only.off"


@dataclass(frozen=True, slots=True)
class ReadOnlyState:
    """`from_environment`: the setting CONSOLE_READ_ONLY_CLUSTERS lists the cluster."""

    read_only: bool
    from_environment: bool = False
    reason: str = ""
    changed_by: str = ""
    since_ms: int | None = None


def is_read_only(cluster: str) -> bool:
    """Read the database: a change counts at once, in every process of the console."""
    if cluster in settings.CONSOLE_READ_ONLY_CLUSTERS:
        return True
    return ReadOnlyCluster.objects.filter(cluster=cluster).exists()


def state_of(cluster: str) -> ReadOnlyState:
    if cluster in settings.CONSOLE_READ_ONLY_CLUSTERS:
        return ReadOnlyState(read_only=True, from_environment=True)
    row = ReadOnlyCluster.objects.filter(cluster=cluster).first()
    if row is None:
        return ReadOnlyState(read_only=False)
    return ReadOnlyState(
        read_only=True, reason=row.reason, changed_by=row.changed_by, since_ms=row.since_ms
    )


def version(cluster: str) -> str:
    """Return the version of the state as ETag."""
    return version_of(asdict(state_of(cluster)))


def turn_on(
    request: HttpRequest | Request, cluster: Cluster, reason: str, expected: str | None = None
) -> None:
    """Raises PreconditionFailed when the state has another version than `expected`."""
    check_unchanged(expected, version(cluster.name))
    with audited(request, TURN_ON, cluster=cluster.name, target=cluster.name) as entry:
        fields = {"reason": reason, "changed_by": request.user.get_username()}
        with transaction.atomic():
            _check_locked(cluster.name, expected)
            ReadOnlyCluster.objects.update_or_create(
                cluster=cluster.name,
                defaults=fields,
                create_defaults={**fields, "since_ms": now_ms()},
            )
        entry.after = {"read_only": True, "reason": reason}


def _check_locked(cluster: str, expected: str | None) -> None:
    """Check the version of the stored state, which stays until the end of the transaction."""
    ReadOnlyCluster.objects.select_for_update().filter(cluster=cluster).first()
    check_unchanged(expected, version(cluster))


def turn_off(request: HttpRequest | Request, cluster: Cluster, expected: str | None = None) -> None:
    """Raises PreconditionFailed when the state has another version than `expected`."""
    check_unchanged(expected, version(cluster.name))
    with audited(request, TURN_OFF, cluster=cluster.name, target=cluster.name) as entry:
        if cluster.name in settings.CONSOLE_READ_ONLY_CLUSTERS:
            raise NotAllowedNow(
                _("The setting CONSOLE_READ_ONLY_CLUSTERS makes this cluster read-only."),
                hint=_("Change the setting, and restart the console."),
            )
        with transaction.atomic():
            _check_locked(cluster.name, expected)
            ReadOnlyCluster.objects.filter(cluster=cluster.name).delete()
        entry.after = {"read_only": False}


class ReasonForm(TablerForm):
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=REASON_CHARS_MAX,
        required=False,
        help_text=gettext_lazy("This page shows the reason."),
    )


@needs(Need.ADMIN)
class ReadOnlyPage(ClusterPage):
    """The switch of the read-only state."""

    template = "clusters/read_only.html"
    actions = {"post": "cluster.read-only"}
    writes_cluster = False

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        return self.form(ReasonForm())

    def post(self, request: HttpRequest, cluster: str) -> HttpResponseBase:
        if "off" in request.POST:
            turn_off(request, self.cluster)
            messages.success(request, _("The cluster is no longer read-only."))
            return redirect("clusters:read-only", cluster)
        form = ReasonForm(request.POST)
        if not form.is_valid():
            return self.form(form, status=422)
        turn_on(request, self.cluster, form.cleaned_data["reason"])
        messages.success(request, _("The cluster is read-only."))
        return redirect("clusters:read-only", cluster)

    def form(self, form: ReasonForm, status: int = 200) -> HttpResponse:
        state = state_of(self.cluster.name)
        return self.show(title=_("Read-only"), form=form, state=state, status=status)


class ReadOnlySerializer(serializers.Serializer[Any]):
    """Whether the console refuses changes of the cluster."""

    read_only = serializers.BooleanField()  # type: ignore[assignment]
    from_environment = serializers.BooleanField(
        help_text="True: the setting CONSOLE_READ_ONLY_CLUSTERS lists the cluster."
    )
    reason = serializers.CharField()
    changed_by = serializers.CharField()
    since_ms = serializers.IntegerField(allow_null=True)


class ReadOnlyPutSerializer(BodySerializer):
    reason = serializers.CharField(
        max_length=REASON_CHARS_MAX, required=False, allow_blank=True, default=""
    )


class ReadOnlyResource(ClusterResource):
    actions = {"put": TURN_ON, "delete": TURN_OFF}
    writes_cluster = False

    @extend_schema(responses=ReadOnlySerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """Whether the cluster is read-only: all writes are then answered with 403 `read_only`."""
        return self.state()

    @extend_schema(
        parameters=[IF_MATCH], request=ReadOnlyPutSerializer, responses=ReadOnlySerializer
    )
    @needs(Need.ADMIN)
    def put(self, request: Request, cluster: str) -> Response:
        """Make the cluster read-only."""
        form = ReadOnlyPutSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        turn_on(request, self.cluster, form.validated_data["reason"], expected_etag(request))
        return self.state()

    @extend_schema(parameters=[IF_MATCH], responses=ReadOnlySerializer)
    @needs(Need.ADMIN)
    def delete(self, request: Request, cluster: str) -> Response:
        """End the read-only state."""
        turn_off(request, self.cluster, expected_etag(request))
        return self.state()

    def state(self) -> Response:
        name = self.cluster.name
        return tagged(ReadOnlySerializer(state_of(name)).data, version(name))

"""Kick of a client with a reason: preview, confirmation and outcome, by page and REST."""

from typing import Any

from django import forms
from django.core import signing
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.flags import DRY_RUN, read_flag
from console.api.serializers import BodySerializer
from console.api.views import ClusterResource
from console.audit.recording import audited
from console.frame.access import Need, needs
from console.frame.forms import TablerForm
from console.frame.pages import ClusterPage, Crumb
from console.gateway import Cluster, GatewayError, NotAllowedNow, now_ms
from console.gateway.kicks import (
    REASON_CHARS_MAX,
    KickPlan,
    KickResult,
    kick_client,
    kick_plan,
    reconnected_ms,
)

ACTION = "client.kick"
NAME_CHARS_MAX = 255
#: Salt of the signed outcome in an address.
OUTCOME_SALT = "console.areas.clients.kicks"


def check_reason(text: str) -> None:
    """Raise ValidationError for a reason that brokers refuse: it becomes a line of their log."""
    if not text.isprintable():
        raise ValidationError(_("The reason must be one line without control characters."))


class KickForm(TablerForm):
    """The reason of a kick, and optionally one group of the client."""

    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=REASON_CHARS_MAX,
        validators=[check_reason],
        help_text=gettext_lazy("For the log of the brokers and the change history."),
    )
    group = forms.CharField(max_length=NAME_CHARS_MAX, required=False, widget=forms.HiddenInput)


class KickFields(BodySerializer):
    """The reason of a kick, and optionally one group of the client."""

    reason = serializers.CharField(
        max_length=REASON_CHARS_MAX, help_text="One line; the brokers log the reason."
    )
    group = serializers.CharField(
        max_length=NAME_CHARS_MAX,
        default="",
        allow_blank=True,
        help_text="Close only connections that consume in this group.",
    )

    def validate_reason(self, reason: str) -> str:
        if not reason.isprintable():
            raise serializers.ValidationError(
                _("The reason must be one line without control characters.")
            )
        return reason


class QueueMoveSerializer(serializers.Serializer[Any]):
    """A queue of the client and the member that gets it; null: no member is left."""

    group = serializers.CharField()
    topic = serializers.CharField()
    broker = serializers.CharField()
    queue_id = serializers.IntegerField()
    heir = serializers.CharField(allow_null=True)


class BrokerKickSerializer(serializers.Serializer[Any]):
    """Result of a kick on one broker; `error` is null on success."""

    broker = serializers.CharField()
    addr = serializers.CharField()
    closed = serializers.ListField(
        child=serializers.CharField(), help_text="Addresses of the closed connections."
    )
    error = serializers.CharField(allow_null=True)


class KickSerializer(serializers.Serializer[Any]):
    """A kick; the brokers are empty in a dry run."""

    client_id = serializers.CharField()
    dry_run = serializers.BooleanField()
    kicked_ms = serializers.IntegerField(allow_null=True)
    groups = serializers.ListField(child=serializers.CharField())
    moves = QueueMoveSerializer(many=True)
    unknown_groups = serializers.ListField(
        child=serializers.CharField(),
        help_text="Groups in which the client reports no queues.",
    )
    unable_brokers = serializers.ListField(
        child=serializers.CharField(), help_text="Brokers that cannot kick clients."
    )
    brokers = BrokerKickSerializer(many=True)


def kicked(
    request: HttpRequest | Request, cluster: Cluster, client: str, reason: str, plan: KickPlan
) -> KickResult:
    """Kick a client, with an audit row. Raises GatewayError as `kick_client`."""
    if not plan.brokers:
        raise NotAllowedNow(_("The brokers of this client cannot kick clients."))
    before = {
        "reason": reason,
        "group": plan.group,
        "groups": list(plan.groups),
        "connections": [each.addr for each in plan.clients],
    }
    with audited(request, ACTION, cluster=cluster.name, target=client, before=before) as entry:
        result = cluster.do(kick_client, client, reason, plan.group)
        entry.after = {"closed": [addr for each in result.brokers for addr in each.closed]}
        entry.outcomes(result.brokers)
    return result


@needs(Need.ADMIN)
class KickPage(ClusterPage):
    """Consequences of a kick, the form with the reason, and afterwards the outcome."""

    template = "clients/kick.html"
    part = "clients/kick_outcome.html"
    actions = {"post": ACTION}

    def get(self, request: HttpRequest, cluster: str, client: str) -> HttpResponse:
        if "kicked" in request.GET:
            return self.outcome(client, request.GET["kicked"])
        group = request.GET.get("group", "")[:NAME_CHARS_MAX]
        return self.form(client, KickForm(initial={"group": group}), group)

    def post(self, request: HttpRequest, cluster: str, client: str) -> HttpResponse:
        form = KickForm(request.POST)
        if not form.is_valid():
            return self.form(client, form, form.cleaned_data.get("group", ""), status=422)
        reason, group = form.cleaned_data["reason"], form.cleaned_data["group"]
        plan = self.cluster.ask(kick_plan, client, group).value
        try:
            result = kicked(request, self.cluster, client, reason, plan)
        except GatewayError as refused:
            form.add_error(None, str(refused.detail))
            return self.form(client, form, group, status=422)
        signed = signing.dumps(
            {
                "ms": result.kicked_ms,
                "group": group,
                "reason": reason,
                "closed": sum(len(each.closed) for each in result.brokers),
                "errors": [f"{each.broker}: {each.error}" for each in result.brokers if each.error],
            },
            salt=OUTCOME_SALT,
        )
        here = reverse("clients:kick", args=[cluster, client])
        return redirect(f"{here}?{urlencode({'kicked': signed})}")

    def outcome(self, client: str, signed: str) -> HttpResponse:
        """The state of the client after a kick; the page asks again every second."""
        try:
            done = signing.loads(signed, salt=OUTCOME_SALT)
        except signing.BadSignature:
            return redirect("clients:kick", self.cluster.name, client)
        answer = self.cluster.ask(reconnected_ms, client, done["ms"], done["group"])
        back_ms = answer.value
        return self.show(
            title=_("Kick client"),
            crumbs=self.crumbs(client),
            answer=answer,
            client_id=client,
            done=done,
            back_after_ms=None if back_ms is None else max(0, back_ms - done["ms"]),
            gone_for_ms=max(0, now_ms() - done["ms"]),
        )

    def form(self, client: str, form: KickForm, group: str, *, status: int = 200) -> HttpResponse:
        answer = self.cluster.ask(kick_plan, client, group)
        return self.show(
            title=_("Kick client"),
            crumbs=self.crumbs(client),
            status=status,
            answer=answer,
            client_id=client,
            plan=answer.value,
            form=form,
        )

    def crumbs(self, client: str) -> list[Crumb]:
        here = [self.cluster.name]
        return [
            Crumb(_("Clients"), reverse("clients:list", args=here)),
            Crumb(client, reverse("clients:detail", args=[*here, client])),
            Crumb(_("Kick client")),
        ]


class ClientKick(ClusterResource):
    actions = {"post": ACTION}

    @extend_schema(parameters=[DRY_RUN], request=KickFields, responses=KickSerializer)
    @needs(Need.ADMIN)
    def post(self, request: Request, cluster: str, client: str) -> Response:
        """Close the connections of a client, so the other members get its queues.

        The client may reconnect at once. 409 when its brokers are Apache's. A dry run returns the
        queues with the members that get them by the default strategy. 207 when a broker failed.
        """
        fields = KickFields(data=request.data)
        fields.is_valid(raise_exception=True)
        given = fields.validated_data
        plan = self.cluster.ask(kick_plan, client, given["group"]).value
        is_dry = read_flag(request, "dry_run")
        if is_dry and not plan.brokers:
            raise NotAllowedNow(_("The brokers of this client cannot kick clients."))
        result = None if is_dry else kicked(request, self.cluster, client, given["reason"], plan)
        brokers = () if result is None else result.brokers
        body = {
            "client_id": client,
            "dry_run": is_dry,
            "kicked_ms": None if result is None else result.kicked_ms,
            "groups": plan.groups,
            "moves": plan.moves,
            "unknown_groups": plan.unknown,
            "unable_brokers": plan.unable,
            "brokers": brokers,
        }
        has_errors = any(each.error for each in brokers)
        return Response(KickSerializer(body).data, status=207 if has_errors else 200)

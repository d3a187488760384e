"""Direct delivery of any stored message to a consumer of a group, by page and REST."""

from dataclasses import replace
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.serializers import BodySerializer
from console.api.views import ClusterResource
from console.areas.messages.views import found_message
from console.audit.recording import audited
from console.frame.access import Need, check_may, needs
from console.frame.forms import TablerForm
from console.frame.masking import mask_of_everybody
from console.frame.pages import ClusterPage, Crumb
from console.frame.permissions import Scope, Target
from console.gateway import Cluster
from console.gateway.messages.direct import DirectResult, ListenerResult, deliver_message
from console.gateway.messages.masks import HIDDEN
from console.gateway.messages.stored import view
from core_broker.message.model import MessageExt

ACTION = "message.deliver"
ID_CHARS_MAX = 64
NAME_CHARS_MAX = 255


class DeliverForm(TablerForm):
    """A message, a group and optionally one client of the group."""

    offset_msg_id = forms.CharField(
        label=gettext_lazy("Offset message ID"), max_length=ID_CHARS_MAX
    )
    group = forms.CharField(label=gettext_lazy("Group"), max_length=NAME_CHARS_MAX)
    client = forms.CharField(
        label=gettext_lazy("Client ID"), max_length=NAME_CHARS_MAX, required=False
    )


class DirectResultSerializer(serializers.Serializer[Any]):
    """The result of one listener call. `success` means that the message was consumed."""

    verdict = serializers.ChoiceField(choices=[each.value for each in ListenerResult])
    remark = serializers.CharField(help_text="Text of the listener's exception.")
    client = serializers.CharField()
    took_ms = serializers.IntegerField()


class DeliverFields(BodySerializer):
    """The consumer of a direct delivery."""

    group = serializers.CharField(max_length=NAME_CHARS_MAX)
    client = serializers.CharField(
        max_length=NAME_CHARS_MAX,
        default="",
        allow_blank=True,
        help_text="Client ID; any client of the group that is connected to the broker if absent.",
    )


def delivered(
    request: HttpRequest | Request, cluster: Cluster, offset_msg_id: str, group: str, client: str
) -> DirectResult:
    """Deliver a message, with an audit row. Needs the rights to write the topic and the group."""
    ref = found_message(cluster.ask(view, offset_msg_id), offset_msg_id)
    check_may(request, Need.WRITE, Target("messages", cluster.name, ref.message.topic))
    check_may(request, Need.WRITE, Target("groups", cluster.name, group))
    with audited(request, ACTION, cluster=cluster.name, target=group) as entry:
        result = cluster.do(deliver_message, offset_msg_id, group, client)
        entry.after = {
            "message": offset_msg_id.upper(),
            "topic": ref.message.topic,
            "client": result.client,
            "verdict": result.verdict.value,
        }
        shown, reason = for_readers(cluster, ref.message, result)
        if result.verdict is not ListenerResult.SUCCESS:
            entry.failed(reason or result.verdict.value)
    return shown


def for_readers(
    cluster: Cluster, message: MessageExt, result: DirectResult
) -> tuple[DirectResult, str]:
    """Return the result for the user of `cluster`, and the remark for lists that others read.

    The text of an exception often quotes the message, so where fields of the message are masked,
    the remark is masked whole.
    """
    remark = result.remark
    if not remark:
        return result, remark
    hides = cluster.mask is not None and cluster.mask().hiding(message)
    shown = replace(result, remark=HIDDEN) if hides else result
    return shown, HIDDEN if mask_of_everybody(cluster.name).hiding(message) else remark


@needs(Need.WRITE)
class DeliverPage(ClusterPage):
    """Direct delivery from the page of a message or client, and its result."""

    template = "message/direct_result.html"
    access_names = Scope.SOME
    actions = {"post": ACTION}

    def get(self, request: HttpRequest, cluster: str) -> HttpResponseBase:
        return redirect("message:list", cluster)

    def post(self, request: HttpRequest, cluster: str) -> HttpResponse:
        form = DeliverForm(request.POST)
        title = _("Result of the direct delivery")
        crumbs = [Crumb(_("Messages"), reverse("message:list", args=[cluster])), Crumb(title)]
        if not form.is_valid():
            return self.show(title=title, crumbs=crumbs, form=form, status=422)
        given = form.cleaned_data
        result = delivered(
            request, self.cluster, given["offset_msg_id"], given["group"], given["client"]
        )
        return self.show(title=title, crumbs=crumbs, result=result, **given)


@needs(Need.WRITE)
class MessageDelivery(ClusterResource):
    access_names = Scope.SOME
    actions = {"post": ACTION}

    @extend_schema(request=DeliverFields, responses=DirectResultSerializer)
    def post(self, request: Request, cluster: str, offset_msg_id: str) -> Response:
        """Deliver a message to one online consumer and return the result of the listener.

        A successful delivery consumes the message; offsets do not move. 409 when no such consumer
        is connected to the broker of the message.
        """
        fields = DeliverFields(data=request.data)
        fields.is_valid(raise_exception=True)
        given = fields.validated_data
        result = delivered(request, self.cluster, offset_msg_id, given["group"], given["client"])
        return Response(DirectResultSerializer(result).data)

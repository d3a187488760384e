"""Pages of the receivers of alarms."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from console.audit.recording import audited
from console.frame.access import Need, needs
from console.frame.confirmations import Confirmation
from console.frame.pages import ClusterPage, Crumb
from console.frame.versions import (
    CHANGED_MEANWHILE,
    check_posted,
    posted_version,
    shown_version,
)
from console.gateway import GatewayError, PreconditionFailed
from console.services.alarms import receivers
from console.services.alarms.forms import ReceiverForm
from console.services.alarms.models import Receiver
from console.services.alarms.receivers_api import tested
from console.services.alarms.rule_views import add_errors
from console.services.alarms.scope import ALL_CLUSTERS, check_scope
from console.services.alarms.serializers import ReceiverSerializer
from console.services.alarms.views import tab_crumbs


class ReceiversPage(ClusterPage):
    """Receivers of notices, for all clusters."""

    template = "alarms/receivers.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        rows = []
        for each in Receiver.objects.order_by("name"):
            last = each.deliveries.order_by("-pk").first()
            rows.append((each, last))
        title = _("Receivers")
        crumb = tab_crumbs(cluster, title)
        return self.show(title=title, crumbs=crumb, tab="receivers", rows=rows)


@needs(Need.ADMIN)
class ReceiverCreatePage(ClusterPage):
    template = "alarms/receiver.html"
    actions = {"post": "alarm-receiver.create"}

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        initial = {"enabled": True, "all_rules": True, "language": get_language()}
        return self.form(ReceiverForm(initial=initial))

    def post(self, request: HttpRequest, cluster: str) -> HttpResponseBase:
        check_scope(request, Need.ADMIN, ALL_CLUSTERS)
        form = ReceiverForm(request.POST)
        if not form.is_valid():
            return self.form(form, status=422)
        name = form.cleaned_data["name"]
        try:
            with audited(request, "alarm-receiver.create", cluster=cluster, target=name) as entry:
                receiver = receivers.save(None, form.draft(), request.user)
                entry.after = ReceiverSerializer(receiver).data
        except ValidationError as wrong:
            add_errors(form, wrong)
            return self.form(form, status=422)
        except GatewayError as refusal:
            form.add_error(None, str(refusal.detail))
            return self.form(form, status=refusal.status)
        messages.success(request, _("The receiver is saved. Send a test notice."))
        return redirect("alarms:receiver", cluster=cluster, number=receiver.pk)

    def form(self, form: ReceiverForm, status: int = 200) -> HttpResponse:
        title = _("Create a receiver")
        crumb = crumbs(self.cluster.name, title)
        return self.show(title=title, crumbs=crumb, form=form, status=status)


@needs(Need.ADMIN)
class ReceiverPage(ClusterPage):
    """One receiver: edit, test, delete."""

    template = "alarms/receiver.html"
    actions = {"post": "alarm-receiver.update"}

    def get(self, request: HttpRequest, cluster: str, number: int) -> HttpResponse:
        receiver = receivers.receiver_numbered(number)
        return self.form(receiver, self.stored(receiver))

    def post(self, request: HttpRequest, cluster: str, number: int) -> HttpResponseBase:
        check_scope(request, Need.ADMIN, ALL_CLUSTERS)
        receiver = receivers.receiver_numbered(number)
        if "test" in request.POST:
            outcome = tested(request, cluster, receiver)
            return self.form(receiver, self.stored(receiver), outcome=outcome)
        if "remove" in request.POST:
            return self.form(receiver, self.stored(receiver), confirmation=of_receiver(receiver))
        before = ReceiverSerializer(receiver).data
        about: dict[str, Any] = {"cluster": cluster, "target": receiver.name, "before": before}
        if "removed" in request.POST:
            with audited(request, "alarm-receiver.delete", **about):
                receivers.delete(receiver)
            messages.success(request, _("The receiver is deleted."))
            return redirect("alarms:receivers", cluster=cluster)
        form = ReceiverForm(request.POST)
        if not form.is_valid():
            return self.form(receiver, form, status=422)
        try:
            check_posted(request, receivers.version(receiver))
            with audited(request, "alarm-receiver.update", **about) as entry:
                expected = posted_version(request)
                receiver = receivers.save(receiver, form.draft(), request.user, expected)
                entry.after = ReceiverSerializer(receiver).data
        except PreconditionFailed:
            receiver = receivers.receiver_numbered(number)
            form.add_error(None, CHANGED_MEANWHILE)
            current = receivers.version(receiver)
            return self.form(receiver, form, status=409, version=current)
        except ValidationError as wrong:
            add_errors(form, wrong)
            return self.form(receiver, form, status=422)
        messages.success(request, _("The receiver is saved. Send a test notice."))
        return redirect("alarms:receiver", cluster=cluster, number=number)

    def stored(self, receiver: Receiver) -> ReceiverForm:
        names = ("name", "kind", "recipients", "language", "all_rules", "enabled")
        return ReceiverForm(initial={name: getattr(receiver, name) for name in names})

    def form(
        self, receiver: Receiver, form: ReceiverForm, status: int = 200, **more: Any
    ) -> HttpResponse:
        current = receivers.version(receiver)
        more.setdefault("version", shown_version(self.request, current))
        return self.show(
            title=receiver.name,
            crumbs=crumbs(self.cluster.name, receiver.name),
            form=form,
            receiver=receiver,
            status=status,
            **more,
        )


def of_receiver(receiver: Receiver) -> Confirmation:
    """Ask before a receiver is deleted."""
    return Confirmation(
        question=_("Delete the receiver “%(name)s”?") % {"name": receiver.name},
        button=_("Delete receiver"),
        name="removed",
        consequences=(_("Waiting notices are not sent. URL and secret cannot be restored."),),
    )


def crumbs(cluster: str, title: str) -> list[Crumb]:
    return [
        Crumb(_("Alarms"), reverse("alarms:list", args=[cluster])),
        Crumb(_("Receivers"), reverse("alarms:receivers", args=[cluster])),
        Crumb(title),
    ]

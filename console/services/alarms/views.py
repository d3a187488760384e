"""Pages of alarms: active ones and history, one alarm, notices, silences; parts of other pages."""

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from console.audit.recording import audited
from console.frame.access import Need
from console.frame.confirmations import ASK, Confirmation
from console.frame.pages import ClusterPage, Crumb
from console.frame.tables import TableQuery
from console.gateway import GatewayError, now_ms
from console.services.alarms import episodes, silences
from console.services.alarms.api import deliveries_of
from console.services.alarms.forms import KINDS, AcknowledgeForm, SilenceForm
from console.services.alarms.models import OBJECT_CHARS_MAX, Delivery, Episode, Silence
from console.services.alarms.scope import check_scope
from console.services.findings.finding import Target
from console.services.findings.listing import KIND_TITLES, page_of

#: Maximum number of alarms on the overview.
SHOWN_ON_OVERVIEW = 5
PAGE_DELIVERIES = 50


class AlarmsPage(ClusterPage):
    """Open alarms, or the resolved ones."""

    template = "alarms/list.html"
    part = "alarms/list_rows.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        state = request.GET.get("state", "")
        state = state if state in episodes.SHOWN else ""
        opened = episodes.open_rows(cluster)
        rows = episodes.resolved_rows(cluster) if state == "resolved" else opened
        default = "-resolved_ms" if state == "resolved" else "severity"
        query = TableQuery.read(request.GET, episodes.COLUMNS, default=default)
        found = query.matching(row for row in rows if state in ("", row.shown))
        page = query.page(found)
        chips = [
            (name, title, sum(row.shown == name for row in opened))
            for name, title in episodes.SHOWN.items()
            if name != "resolved"
        ]
        return self.show(
            title=_("Alarms"),
            tab="list",
            page=page,
            receivers=episodes.receivers_by_episode(page.rows),
            state=state,
            chips=chips,
            open_count=len(opened),
        )


class AlarmPage(ClusterPage):
    """One alarm: value, times, notices; acknowledge."""

    template = "alarms/detail.html"
    part = "alarms/detail_part.html"
    actions = {"post": "alarm.acknowledge"}

    def get(self, request: HttpRequest, cluster: str, number: int) -> HttpResponse:
        return self.form(number, AcknowledgeForm())

    def post(self, request: HttpRequest, cluster: str, number: int) -> HttpResponseBase:
        episode = episodes.episode_numbered(cluster, number)
        form = AcknowledgeForm(request.POST)
        if not form.is_valid():
            return self.form(number, form, status=422)
        note = form.cleaned_data["note"]
        about: dict[str, Any] = {"cluster": cluster, "target": str(episode)}
        with audited(request, "alarm.acknowledge", **about) as entry:
            episodes.acknowledge(episode, request.user, note)
            entry.after = {"note": note}
        messages.success(request, _("The alarm is acknowledged."))
        return redirect("alarms:detail", cluster=cluster, number=number)

    def form(self, number: int, form: AcknowledgeForm, status: int = 200) -> HttpResponse:
        cluster = self.cluster.name
        episode = episodes.episode_numbered(cluster, number)
        matcher = {"kind": episode.kind, "pattern": episode.name, "rule": episode.rule_id or ""}
        alarms = Crumb(_("Alarms"), reverse("alarms:list", args=[cluster]))
        return self.show(
            title=episode.name or cluster,
            crumbs=[alarms, Crumb(episode.name or cluster)],
            row=episodes.row_of(episode),
            episode=episode,
            object_url=object_url(cluster, episode),
            kind_title=KINDS.get(episode.kind, episode.kind),
            deliveries=deliveries_of(episode),
            silence_query=urlencode(matcher),
            form=form,
            status=status,
        )


def tab_crumbs(cluster: str, title: str) -> list[Crumb]:
    """The crumbs of a tab: “Rules” alone does not say which rules."""
    return [Crumb(_("Alarms"), reverse("alarms:list", args=[cluster])), Crumb(title)]


def object_url(cluster: str, episode: Episode) -> str:
    """Return the URL of the page of an alarm's object; empty for the cluster."""
    if episode.kind not in KIND_TITLES:
        return ""
    return page_of(cluster, Target(episode.kind, episode.name))  # type: ignore[arg-type]


class DeliveriesPage(ClusterPage):
    """Notices of the cluster with their outcome, the newest first."""

    template = "alarms/deliveries.html"
    part = "alarms/delivery_rows.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        rows = Delivery.objects.filter(cluster=cluster).select_related("rule").order_by("-pk")
        page = Paginator(rows, PAGE_DELIVERIES).get_page(request.GET.get("page"))
        title = _("Notices")
        crumbs = tab_crumbs(cluster, title)
        return self.show(title=title, crumbs=crumbs, tab="deliveries", page=page, deliveries=page)


class SilencesPage(ClusterPage):
    """Silences, and the form for a new one."""

    template = "alarms/silences.html"
    part = "alarms/silence_rows.html"
    actions = {"post": "alarm-silence.create"}

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        names = ("rule", "kind", "pattern")
        initial = {name: request.GET.get(name, "")[:OBJECT_CHARS_MAX] for name in names}
        form = SilenceForm(cluster, initial=initial)
        return self.form(form, confirmation=self.confirmation(request))

    def confirmation(self, request: HttpRequest) -> Confirmation | None:
        """Return the question of the address."""
        if request.GET.get(ASK) != "end":
            return None
        silence = self.silence(request.GET.get("silence", ""))
        return Confirmation(
            question=_("End the silence “%(reason)s” now?") % {"reason": silence.reason},
            button=_("End now"),
            name="end",
            value=str(silence.pk),
            consequences=(_("Alarms that fire under the silence send their notices then."),),
            icon="moon",
        )

    def silence(self, text: str) -> Silence:
        """Return the silence of a number in a request."""
        number = int(text) if text.isdecimal() and len(text) < 10 else 0
        return silences.silence_numbered(self.cluster.name, number)

    def post(self, request: HttpRequest, cluster: str) -> HttpResponseBase:
        if "end" in request.POST:
            return self.end(request, cluster)
        form = SilenceForm(cluster, request.POST)
        if not form.is_valid():
            return self.form(form, status=422)
        values = form.values()
        check_scope(request, Need.WRITE, values["cluster"])
        try:
            with audited(request, "alarm-silence.create", cluster=cluster) as entry:
                silence = silences.create(values, request.user)
                entry.target, entry.after = str(silence.pk), silences.state_of(silence)
        except GatewayError as refusal:
            form.add_error(None, str(refusal.detail))
            return self.form(form, status=refusal.status)
        messages.success(request, _("The silence has begun."))
        return redirect("alarms:silences", cluster=cluster)

    def end(self, request: HttpRequest, cluster: str) -> HttpResponseBase:
        silence = self.silence(request.POST["end"])
        check_scope(request, Need.WRITE, silence.cluster)
        about: dict[str, Any] = {"target": str(silence.pk), "before": silences.state_of(silence)}
        with audited(request, "alarm-silence.end", cluster=cluster, **about):
            silences.end(silence)
        messages.success(request, _("The silence has ended."))
        return redirect("alarms:silences", cluster=cluster)

    def form(self, form: SilenceForm, status: int = 200, **more: Any) -> HttpResponse:
        at_ms = now_ms()
        rows = silences.silences_of(self.cluster.name)
        return self.show(
            title=_("Silences"),
            crumbs=tab_crumbs(self.cluster.name, _("Silences")),
            tab="silences",
            form=form,
            status=status,
            silences=[(each, each.until_ms > at_ms) for each in rows],
            kinds=KINDS,
            **more,
        )


class FiringPart(ClusterPage):
    """The firing alarms on the overview, which polls this part."""

    template = "alarms/firing.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        return self.show(title=_("Alarms"), **firing_context(cluster))


class ObjectPart(ClusterPage):
    """The firing alarms of one object, on the page of the object."""

    template = "alarms/of_object.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        kind, name = request.GET.get("kind", ""), request.GET.get("name", "")
        rows = episodes.rows_of_object(cluster, kind, name[:OBJECT_CHARS_MAX].replace("\x00", ""))
        return self.show(title=_("Alarms"), rows=rows)


def firing_context(cluster: str) -> dict[str, Any]:
    """Context of `alarms/firing.html`."""
    rows = episodes.firing_rows(cluster)
    return {
        "rows": rows[:SHOWN_ON_OVERVIEW],
        "more": max(0, len(rows) - SHOWN_ON_OVERVIEW),
        "worst": rows[0].episode.severity if rows else "",
    }

"""Pages: where a group would go, queue by queue; then whether it went there, and the way back."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from console.areas.offsets.forms import WishForm, read_each
from console.areas.offsets.models import OffsetReset
from console.areas.offsets.resets import (
    RESET_ACTION,
    UNDO_ACTION,
    carry_out,
    checked,
    reset_of,
    undo_wish,
)
from console.frame.pages import ClusterPage, Crumb
from console.gateway import NotAllowedNow, NotFound, Unusable
from console.gateway.groups.listing import group_settings
from console.gateway.groups.members import group_clients
from console.gateway.groups.progress import queue_progress
from console.gateway.offsets.plan import Plan, ResetMethod, ResetRequest, ResetTarget
from console.gateway.offsets.reset import plan
from core_broker.message.topics import RETRY_PREFIX

RESETS_SHOWN = 10


class OffsetsPage(ClusterPage):
    """The wizard: what is asked stands in the address, the preview below, a button at its end."""

    template = "offsets/wizard.html"
    actions = {"post": RESET_ACTION}

    def get(self, request: HttpRequest, cluster: str, group: str) -> HttpResponse:
        asked = "topic" in request.GET and "to" in request.GET
        topics = self._topics(group)
        if not asked:
            first = request.GET.get("topic") or (topics[0] if topics else "")
            return self._show(group, topics, WishForm(initial={"topic": first}))
        form = WishForm(request.GET)
        if not form.is_valid():
            return self._show(group, topics, form, status=400)
        try:
            answer = self.cluster.ask(plan, group, form.wish)
        except (NotFound, NotAllowedNow, Unusable) as fault:
            form.add_error(None, f"{fault.detail} {fault.hint}".strip())
            return self._show(group, topics, form, status=fault.status)
        return self._show(group, topics, form, answer=answer, each=confirmed(answer.value))

    def post(self, request: HttpRequest, cluster: str, group: str) -> HttpResponseBase:
        """What the preview showed; an etag comes along where nothing but a person moves offsets."""
        form = WishForm(request.GET)
        if not form.is_valid():
            return self._show(group, self._topics(group), form, status=400)
        wish = form.wish
        if request.POST.getlist("each"):
            try:
                each = read_each(request.POST.getlist("each"))
            except ValueError as fault:
                raise Unusable(str(fault)) from None
            wish = ResetRequest(wish.topic, ResetTarget.EACH, each=each)
        etag = request.POST.get("etag") or None
        row, _plan, _outcomes = carry_out(request, self.cluster, group, wish, expected_etag=etag)
        return redirect("offsets:reset", self.cluster.name, group, row.pk)

    def _topics(self, group: str) -> list[str]:
        """What the group consumes, or has an offset in."""
        self.cluster.ask(group_settings, group)  # 404 for a group that does not exist
        members = self.cluster.ask(group_clients, group).value
        found = {each.topic for each in self.cluster.ask(queue_progress, group).value}
        found |= {each.topic for each in members.subscriptions}
        return sorted(each for each in found if not each.startswith(RETRY_PREFIX))

    def _show(
        self, group: str, topics: list[str], form: WishForm, *, status: int = 200, **more: Any
    ) -> HttpResponse:
        rows = OffsetReset.objects.filter(cluster=self.cluster.name, group=group)
        title = _("Move offsets")
        return self.show(
            title=title,
            crumbs=group_crumbs(self.cluster.name, group, title),
            status=status,
            group=group,
            topics=topics,
            form=form,
            members=self.cluster.ask(group_clients, group).value,
            resets=rows.select_related("by")[:RESETS_SHOWN],
            **more,
        )


class ResetPage(ClusterPage):
    """One reset: where each queue was, was to go and is now; it refreshes itself."""

    template = "offsets/reset.html"
    part = "offsets/reset_live.html"

    def get(self, request: HttpRequest, cluster: str, group: str, number: int) -> HttpResponse:
        row = reset_of(self.cluster.name, group, number)
        answer = checked(self.cluster, row)
        title = _("Reset %(number)d") % {"number": row.pk}
        return self.show(
            title=title,
            crumbs=group_crumbs(self.cluster.name, group, title),
            group=group,
            row=row,
            answer=answer,
            moved=sum(each.moved for each in answer.value),
            is_over=all(each.moved for each in answer.value),
        )


class UndoPage(ClusterPage):
    """Back to the offsets before a reset."""

    actions = {"post": UNDO_ACTION}

    def get(self, request: HttpRequest, cluster: str, group: str, number: int) -> HttpResponseBase:
        return redirect("offsets:reset", self.cluster.name, group, number)

    def post(self, request: HttpRequest, cluster: str, group: str, number: int) -> HttpResponseBase:
        row = reset_of(self.cluster.name, group, number)
        try:
            undone, _plan, _outcomes = carry_out(
                request, self.cluster, group, undo_wish(row), undoes=row
            )
        except NotAllowedNow as fault:
            messages.error(request, f"{fault.detail} {fault.hint}".strip())
            return redirect("offsets:reset", self.cluster.name, group, number)
        return redirect("offsets:reset", self.cluster.name, group, undone.pk)


def confirmed(planned: Plan) -> list[str]:
    """What the confirmation sends: an offset for each queue, unless only a time can be told."""
    if any(way is ResetMethod.TIME for _broker, way in planned.methods):
        return []
    return [
        f"{each.position.broker.name}:{each.position.queue_id}:{each.new}"
        for each in planned.changes
    ]


def group_crumbs(cluster: str, group: str, *last: str) -> list[Crumb]:
    return [
        Crumb(_("Groups"), reverse("groups:list", args=[cluster])),
        Crumb(group, reverse("groups:detail", args=[cluster, group])),
        *(Crumb(each) for each in last),
    ]

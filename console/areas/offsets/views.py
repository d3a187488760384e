"""Pages of offset resets: preview by queue, reset, check, undo."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from console.areas.offsets.forms import ResetForm, read_queue_offsets
from console.areas.offsets.models import OffsetReset
from console.areas.offsets.pictures import bar_of
from console.areas.offsets.resets import (
    RESET_ACTION,
    UNDO_ACTION,
    check_reset,
    execute_reset,
    reset_of,
    undo_request,
)
from console.frame.pages import ClusterPage, Crumb
from console.gateway import GatewayError, NotAllowedNow, NotFound, Unusable
from console.gateway.groups.listing import group_settings
from console.gateway.groups.members import group_clients
from console.gateway.groups.progress import queue_progress
from console.gateway.offsets.plan import Plan, ResetMethod, ResetRequest, ResetTarget
from console.gateway.offsets.positions import positions
from console.gateway.offsets.reset import plan
from core_broker.message.topics import RETRY_PREFIX

RESETS_SHOWN = 10
#: Maximum number of queues with a check box; a topic with more has a text field.
QUEUE_BOXES_MAX = 64


@dataclass(frozen=True, slots=True)
class QueueBox:
    """The check box of a queue, `broker:queue`; `lag` is None before the first commit."""

    name: str
    lag: int | None
    is_chosen: bool


class OffsetsPage(ClusterPage):
    """The reset wizard. The page address holds the parameters; the preview has the reset button."""

    template = "offsets/wizard.html"
    actions = {"post": RESET_ACTION}

    def get(self, request: HttpRequest, cluster: str, group: str) -> HttpResponse:
        is_submitted = "topic" in request.GET and "to" in request.GET
        topics = self._topics(group)
        if not is_submitted:
            first = request.GET.get("topic") or (topics[0] if topics else "")
            return self._show(group, topics, ResetForm(initial={"topic": first}))
        form = ResetForm(request.GET)
        if not form.is_valid():
            return self._show(group, topics, form, status=400)
        try:
            answer = self.cluster.ask(plan, group, form.reset_request)
        except (NotFound, NotAllowedNow, Unusable) as fault:
            form.add_error(None, f"{fault.detail} {fault.hint}".strip())
            return self._show(group, topics, form, status=fault.status)
        return self._show(group, topics, form, answer=answer, offsets=confirmed(answer.value))

    def post(self, request: HttpRequest, cluster: str, group: str) -> HttpResponseBase:
        """Execute the reset of the preview. For an offline group the form has the preview's ETag:
        without consumers, only another person can have changed the offsets."""
        form = ResetForm(request.GET)
        if not form.is_valid():
            return self._show(group, self._topics(group), form, status=400)
        reset_request = form.reset_request
        if request.POST.getlist("each"):
            try:
                offsets = read_queue_offsets(request.POST.getlist("each"))
            except ValueError as fault:
                raise Unusable(str(fault)) from None
            reset_request = ResetRequest(reset_request.topic, ResetTarget.EACH, each=offsets)
        etag = request.POST.get("etag") or None
        row, _plan, _outcomes = execute_reset(
            request, self.cluster, group, reset_request, expected_etag=etag
        )
        return redirect("offsets:reset", self.cluster.name, group, row.pk)

    def _topics(self, group: str) -> list[str]:
        """Topics with an offset or a subscription of the group."""
        self.cluster.ask(group_settings, group)  # 404 for a group that does not exist
        members = self.cluster.ask(group_clients, group).value
        topics = {queue.topic for queue in self.cluster.ask(queue_progress, group).value}
        topics |= {subscription.topic for subscription in members.subscriptions}
        return sorted(topic for topic in topics if not topic.startswith(RETRY_PREFIX))

    def _show(
        self, group: str, topics: list[str], form: ResetForm, *, status: int = 200, **more: Any
    ) -> HttpResponse:
        rows = OffsetReset.objects.filter(cluster=self.cluster.name, group=group)
        planned = more.get("answer")
        title = _("Reset offsets")
        return self.show(
            title=title,
            crumbs=group_crumbs(self.cluster.name, group, title),
            status=status,
            group=group,
            topics=topics,
            form=form,
            queues=self._queues(group, form),
            bars=[(move, bar_of(move)) for move in planned.value.moves] if planned else [],
            members=self.cluster.ask(group_clients, group).value,
            resets=[
                row
                for row in rows.select_related("by")[:RESETS_SHOWN]
                if self.cluster.sees_topic(row.topic)
            ],
            **more,
        )

    def _queues(self, group: str, form: ResetForm) -> list[QueueBox]:
        """The check boxes of the form's topic; none for a topic without a short list of queues."""
        topic = str(form["topic"].value() or "")
        if not topic:
            return []
        try:
            found, _failures = self.ask_if_up(positions, group, topic)
        except GatewayError:
            return []
        chosen = set(str(form["queues"].value() or "").replace(",", " ").split())
        boxes = [
            QueueBox(name := f"{each.broker.name}:{each.queue_id}", each.lag, name in chosen)
            for each in found or ()
        ]
        is_short = len(boxes) <= QUEUE_BOXES_MAX
        return boxes if is_short and chosen <= {box.name for box in boxes} else []


class ResetPage(ClusterPage):
    """A reset: old, target and present offset of each queue. The page refreshes."""

    template = "offsets/reset.html"
    part = "offsets/reset_live.html"

    def get(self, request: HttpRequest, cluster: str, group: str, number: int) -> HttpResponse:
        row = reset_of(self.cluster, group, number)
        answer = check_reset(self.cluster, row)
        title = _("Reset %(number)d") % {"number": row.pk}
        return self.show(
            title=title,
            crumbs=group_crumbs(self.cluster.name, group, title),
            group=group,
            row=row,
            answer=answer,
            moved=sum(check.moved for check in answer.value),
            is_over=all(check.moved for check in answer.value),
        )


class UndoPage(ClusterPage):
    """Restores the offsets from before a reset."""

    actions = {"post": UNDO_ACTION}

    def get(self, request: HttpRequest, cluster: str, group: str, number: int) -> HttpResponseBase:
        return redirect("offsets:reset", self.cluster.name, group, number)

    def post(self, request: HttpRequest, cluster: str, group: str, number: int) -> HttpResponseBase:
        row = reset_of(self.cluster, group, number)
        try:
            undone, _plan, _outcomes = execute_reset(
                request, self.cluster, group, undo_request(row), undoes=row
            )
        except NotAllowedNow as fault:
            messages.error(request, f"{fault.detail} {fault.hint}".strip())
            return redirect("offsets:reset", self.cluster.name, group, number)
        return redirect("offsets:reset", self.cluster.name, group, undone.pk)


def confirmed(planned: Plan) -> list[str]:
    """Values of the confirmation: an offset per queue. Empty when a broker resets by time only, and
    so cannot name the offsets in advance."""
    if any(way is ResetMethod.TIME for _broker, way in planned.methods):
        return []
    return [
        f"{move.position.broker.name}:{move.position.queue_id}:{move.new}"
        for move in planned.changes
    ]


def group_crumbs(cluster: str, group: str, *last: str) -> list[Crumb]:
    return [
        Crumb(_("Groups"), reverse("groups:list", args=[cluster])),
        Crumb(group, reverse("groups:detail", args=[cluster, group])),
        *(Crumb(title) for title in last),
    ]

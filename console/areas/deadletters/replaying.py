"""Pages of replays: preview, target, rate, start, outcomes."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from console.areas.deadletters import replays
from console.areas.deadletters.forms import FilterForm, ReplayForm
from console.areas.deadletters.models import Replay
from console.areas.deadletters.requests import filter_of, for_user, plan_of
from console.areas.deadletters.views import dead_letter_crumbs
from console.audit.recording import audited
from console.frame.masking import without_values
from console.frame.pages import ClusterPage
from console.gateway import Unusable
from console.gateway.dead_letters.search import count
from console.services.jobs.errors import AlreadyActive
from console.web.dependencies import redis_problem

REPLAYS_SHOWN = 20
OUTCOMES_SHOWN = 50
START_ACTION = "deadletter.replay"


class ReplayPage(ClusterPage):
    """Preview of a replay. The URL holds the filter."""

    template = "deadletters/replay.html"
    actions = {"post": START_ACTION}

    def get(self, request: HttpRequest, cluster: str, group: str) -> HttpResponse:
        filter_form = FilterForm(request.GET)
        return self._show(group, filter_form, ReplayForm())

    def post(self, request: HttpRequest, cluster: str, group: str) -> HttpResponseBase:
        filter_form, form = FilterForm(request.GET), ReplayForm(request.POST)
        if not (filter_form.is_valid() and form.is_valid()):
            return self._show(group, filter_form, form, status=400)
        wish = {"filter": filter_form.asked, **form.asked}
        rate = form.cleaned_data["rate"]
        try:
            for_user(request, cluster, plan_of(wish))
            with audited(request, START_ACTION, cluster=self.cluster.name, target=group) as entry:
                replay, job = replays.begin(self.cluster, group, wish, rate, by=request.user)
                entry.after = {"replay": replay.pk, "job": job.pk, "rate": rate}
                entry.after |= without_values(cluster, wish)
        except Unusable as fault:
            form.add_error(None, str(fault.detail))
            return self._show(group, filter_form, form, status=400)
        except AlreadyActive as active:
            return redirect("jobs:detail", self.cluster.name, active.job.pk)
        return redirect("jobs:detail", self.cluster.name, job.pk)

    def _show(
        self, group: str, filter_form: FilterForm, form: ReplayForm, status: int = 200
    ) -> HttpResponse:
        counted = None
        if filter_form.is_valid():
            wanted = filter_of(self.cluster.name, group, filter_form.asked)
            counted = self.cluster.ask(count, group, wanted)
        else:
            status = 400
        query = {name: v for name in filter_form.fields if (v := self.request.GET.get(name))}
        rows = Replay.objects.filter(cluster=self.cluster.name, group=group).select_related("by")
        return self.show(
            title=_("Resend all matching"),
            crumbs=dead_letter_crumbs(self.cluster.name, group, _("Replay")),
            status=status,
            group=group,
            counted=counted,
            filter_form=filter_form,
            conditions=conditions(filter_form),
            form=form,
            query=urlencode(query),
            redis_problem=redis_problem(),
            history=[(each, replays.job_of(each)) for each in rows[:REPLAYS_SHOWN]],
        )


class OutcomesPage(ClusterPage):
    """One replay: request parameters and outcomes per dead letter."""

    template = "deadletters/replay_outcomes.html"

    def get(self, request: HttpRequest, cluster: str, group: str, number: int) -> HttpResponse:
        replay = replay_of(self.cluster.name, group, number)
        chosen = request.GET.get("result", "")
        rows = replays.outcomes_of(replay)
        if chosen in replays.RESULTS:
            rows = rows.filter(result=chosen)
        before = request.GET.get("before", "")
        if before.isascii() and before.isdecimal() and len(before) < 19:
            rows = rows.filter(pk__lt=int(before))
        found = list(rows[: OUTCOMES_SHOWN + 1])
        shown = found[:OUTCOMES_SHOWN]
        title = _("Replay %(number)d") % {"number": replay.pk}
        return self.show(
            title=title,
            crumbs=dead_letter_crumbs(self.cluster.name, group, title),
            group=group,
            replay=replay,
            job=replays.job_of(replay),
            rows=shown,
            chosen=chosen,
            results=replays.RESULTS,
            before=shown[-1].pk if len(found) > OUTCOMES_SHOWN else None,
        )


def conditions(form: FilterForm) -> list[tuple[Any, str]]:
    """Labels and values of the active filter fields."""
    return [
        (form.fields[name].label, value)
        for name in form.fields
        if (value := form.data.get(name, ""))
    ]


def replay_of(cluster: str, group: str, number: int) -> Replay:
    """One replay of a group. Raises NotFound for an unknown or deleted replay."""
    found = Replay.objects.filter(cluster=cluster, group=group, pk=number).first()
    if found is None:
        raise replays.no_such_replay(number)
    return found

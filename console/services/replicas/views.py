"""Pages of the area `replicas`: all sets, one set, and the election of a master."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from console.frame.access import Need, needs
from console.frame.pages import ClusterPage, Crumb
from console.gateway import Answer, GatewayError, NotFound, PreconditionFailed, now_ms
from console.gateway.replicas.electing import ElectionPlan, plan_election
from console.gateway.replicas.listing import timed_replica_sets
from console.gateway.replicas.model import Epoch, ReplicaSet, ReplicaSets
from console.services.replicas.demo_switch import switch_of
from console.services.replicas.elections import ACTION, elect
from console.services.replicas.forms import ElectForm
from console.services.replicas.models import RoleChange
from console.services.replicas.reading import RANGES, Record, read_range, read_records
from console.services.replicas.timeline import Timeline

#: Maximum number of role changes on the page of a set.
CHANGES_SHOWN_MAX = 50


@dataclass(frozen=True, slots=True)
class SetView:
    """A replica set with its record and picture."""

    found: ReplicaSet
    record: Record
    picture: Timeline | None
    labels: dict[str, str]


@dataclass(frozen=True, slots=True)
class EpochLine:
    """An epoch over the replicas. `cells`: the end offset of each replica; None: no such epoch."""

    number: int
    start_offset: int
    began_ms: int | None
    cells: tuple[Epoch | None, ...]
    differs: bool


def set_views(cluster: str, sets: tuple[ReplicaSet, ...], range_: str) -> list[SetView]:
    at_ms = now_ms()
    records = read_records(cluster, [one.name for one in sets], at_ms)
    return [
        SetView(
            found,
            records[found.name],
            None if found.mode == "single" else records[found.name].picture(found, range_, at_ms),
            {one.addr: f"{one.number}" for one in found.replicas if one.number is not None},
        )
        for found in sets
    ]


def epoch_lines(found: ReplicaSet) -> list[EpochLine]:
    """Return the epochs of all replicas, newest first."""
    tables = [{each.number: each for each in one.epochs or ()} for one in found.replicas]
    numbers = sorted({number for table in tables for number in table}, reverse=True)
    lines = []
    for number in numbers:
        cells = tuple(table.get(number) for table in tables)
        known = [each for each in cells if each is not None]
        starts = {each.start_offset for each in known}
        began = next((each.began_ms for each in known if each.began_ms is not None), None)
        lines.append(EpochLine(number, min(starts), began, cells, len(starts) > 1))
    return lines


def ranges_of(range_: str) -> list[tuple[str, Any, bool]]:
    return [(key, label, key == range_) for key, (_ms, label) in RANGES.items()]


class ReplicasPage(ClusterPage):
    """All replica sets and controllers; the page replaces its contents every two seconds."""

    template = "replicas/list.html"
    part = "replicas/list_part.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        answer = self.cluster.ask(timed_replica_sets)
        range_ = read_range(request.GET.get("range"))
        return self.show(
            title=_("Replicas"),
            answer=answer,
            groups=answer.value.groups,
            views=set_views(cluster, answer.value.sets, range_),
            ranges=ranges_of(range_),
            copies=any(one.mode != "single" for one in answer.value.sets),
            may_kill=switch_of(self.cluster) is not None,
        )


class ReplicaSetPage(ClusterPage):
    """One replica set: replicas, epochs, picture and role changes."""

    template = "replicas/set.html"
    part = "replicas/set_part.html"

    def get(self, request: HttpRequest, cluster: str, broker: str) -> HttpResponse:
        answer = self.cluster.ask(timed_replica_sets)
        found = find_set(answer, broker)
        range_ = read_range(request.GET.get("range"))
        (view,) = set_views(cluster, (found,), range_)
        changes: list[RoleChange] = list(reversed(view.record.changes))
        back = reverse("replicas:list", args=[cluster])
        return self.show(
            title=broker,
            crumbs=[Crumb(_("Replicas"), back), Crumb(broker)],
            answer=answer,
            view=view,
            group=answer.value.group_of(broker),
            epochs=epoch_lines(found),
            changes=changes[:CHANGES_SHOWN_MAX],
            changes_left_out=max(0, len(changes) - CHANGES_SHOWN_MAX),
            ranges=ranges_of(range_),
            may_kill=switch_of(self.cluster) is not None,
        )


@needs(Need.ADMIN)
class ElectPage(ClusterPage):
    """Consequences of an election, and the election after the typed broker name."""

    template = "replicas/elect.html"
    actions = {"post": ACTION}

    def get(self, request: HttpRequest, cluster: str, broker: str, number: int) -> HttpResponse:
        answer, plan = self.plan(broker, number)
        form = ElectForm(expected=broker, initial={"etag": plan.found.etag})
        return self.form(answer, plan, form)

    def post(self, request: HttpRequest, cluster: str, broker: str, number: int) -> HttpResponse:
        answer, plan = self.plan(broker, number)
        form = ElectForm(request.POST, expected=broker)
        if not form.is_valid():
            return self.form(answer, plan, form, status=422)
        try:
            result = elect(request, self.cluster, plan, form.cleaned_data["etag"] or None)
        except PreconditionFailed as conflict:
            messages.error(request, f"{conflict.detail} {conflict.hint}")
            return redirect("replicas:elect", cluster, broker, number)
        except GatewayError as refused:
            form.add_error(None, str(refused.detail))
            return self.form(answer, plan, form, status=422)
        messages.success(
            request,
            _("The master of “%(name)s” is %(addr)s (replica %(number)s) in epoch %(epoch)s.")
            % {
                "name": broker,
                "addr": result.addr,
                "number": result.number,
                "epoch": result.epoch,
            },
        )
        return redirect("replicas:set", cluster, broker)

    def plan(self, broker: str, number: int) -> tuple[Answer[ReplicaSets], ElectionPlan]:
        answer = self.cluster.ask(timed_replica_sets)
        return answer, plan_election(answer.value, broker, number)

    def form(
        self,
        answer: Answer[ReplicaSets],
        plan: ElectionPlan,
        form: ElectForm,
        *,
        status: int = 200,
    ) -> HttpResponse:
        name = plan.found.name
        here = [self.cluster.name]
        return self.show(
            title=_("Elect master"),
            crumbs=[
                Crumb(_("Replicas"), reverse("replicas:list", args=here)),
                Crumb(name, reverse("replicas:set", args=[*here, name])),
                Crumb(_("Elect master")),
            ],
            status=status,
            answer=answer,
            plan=plan,
            form=form,
            back=reverse("replicas:set", args=[*here, name]),
        )


def find_set(answer: Answer[ReplicaSets], name: str) -> ReplicaSet:
    """Return the set of a name. Raises NotFound."""
    found = answer.value.get(name)
    if found is None:
        raise NotFound(_("The cluster has no replica set “%s”.") % name, failures=answer.failures)
    return found

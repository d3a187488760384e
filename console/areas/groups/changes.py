"""Pages that change groups: create, edit with the difference shown before, delete."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from console.areas.groups.forms import GroupCreateForm, GroupDeleteForm, GroupSettingsForm
from console.audit.recording import audited
from console.frame.access import Need, needs
from console.frame.outcomes import tell_outcomes
from console.frame.pages import ClusterPage, Crumb
from console.gateway import AlreadyThere, BrokerRef, Changed
from console.gateway.brokers.listing import broker_names
from console.gateway.changes import etag_of, states
from console.gateway.groups.changes import (
    FIELDS,
    create_group,
    delete_group,
    differences,
    group_impact,
    update_group,
)
from console.gateway.groups.listing import group_settings
from console.resources import history
from console.resources.models import Kind
from console.resources.protection import check_deletable, is_protected
from core_broker.remoting.bodies import SubscriptionGroupConfig

Held = tuple[tuple[BrokerRef, SubscriptionGroupConfig], ...]


@needs(Need.WRITE)
class GroupCreatePage(ClusterPage):
    template = "groups/create.html"
    actions = {"post": "group.create"}

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        return self.form(GroupCreateForm(initial={"name": request.GET.get("name", "")}))

    def post(self, request: HttpRequest, cluster: str) -> HttpResponse:
        form = GroupCreateForm(request.POST)
        form.offer_brokers(self.cluster.ask(broker_names).value)
        if not form.is_valid():
            return self.form(form, status=422)
        given = form.cleaned_data
        name, wanted = given["name"], form.settings()
        try:
            with audited(request, "group.create", cluster=cluster, target=name) as entry:
                outcomes = self.cluster.do(create_group, name, wanted, given["brokers"])
                entry.after = wanted
                entry.outcomes(outcomes)
        except AlreadyThere as taken:
            form.add_error("name", str(taken.detail))
            return self.form(form, status=409)
        tell_outcomes(request, outcomes, _("Group “%s” is created.") % given["name"])
        return redirect("groups:detail", cluster=cluster, group=given["name"])

    def form(self, form: GroupCreateForm, status: int = 200) -> HttpResponse:
        form.offer_brokers(self.cluster.ask(broker_names).value)
        title = _("Create a group")
        crumbs = [Crumb(_("Groups"), reverse("groups:list", args=[self.cluster.name]))]
        return self.show(title=title, crumbs=[*crumbs, Crumb(title)], form=form, status=status)


@needs(Need.WRITE)
class GroupEditPage(ClusterPage):
    """Two steps: the form, and then what it would change on which broker."""

    template = "groups/edit.html"
    actions = {"post": "group.update"}

    def get(self, request: HttpRequest, cluster: str, group: str) -> HttpResponse:
        held = self.cluster.ask(group_settings, group).value
        return self.form(group, held, settings_form(held))

    def post(self, request: HttpRequest, cluster: str, group: str) -> HttpResponse:
        held = self.cluster.ask(group_settings, group).value
        form = settings_form(held, request.POST)
        if not form.is_valid() or "change" in request.POST:
            return self.form(group, held, form, status=200 if form.is_valid() else 422)
        wanted = set(form.cleaned_data["brokers"])
        chosen = [(ref, config) for ref, config in held if ref.name in wanted]
        changes = differences(chosen, form.settings())
        if not changes or "save" not in request.POST:
            return self.form(group, held, form, changes=changes, asked=True)
        act: dict[str, Any] = {"cluster": cluster, "target": group, "before": states(chosen)}
        etag = request.POST.get("etag")
        try:
            with audited(request, "group.update", **act) as entry:
                outcomes = self.cluster.do(
                    update_group, group, form.settings(), sorted(wanted), etag
                )
                entry.after = form.settings()
                entry.outcomes(outcomes)
        except Changed as changed:
            messages.error(request, f"{changed.detail} {changed.hint}")
            return redirect("groups:edit", cluster=cluster, group=group)
        history.keep(request.user, cluster, Kind.GROUP, group, changes, outcomes)
        tell_outcomes(request, outcomes, _("Group “%s” is changed.") % group)
        return redirect("groups:detail", cluster=cluster, group=group)

    def form(
        self, group: str, held: Held, form: GroupSettingsForm, *, status: int = 200, **more: Any
    ) -> HttpResponse:
        return self.show(
            title=_("Edit %s") % group,
            crumbs=[*group_crumbs(self.cluster.name, group), Crumb(_("Edit"))],
            status=status,
            group=group,
            drift=any(config != held[0][1] for _ref, config in held),
            form=form,
            past=history.recent(self.cluster.name, Kind.GROUP, group),
            etag=etag_of(held),
            **more,
        )


@needs(Need.ADMIN)
class GroupDeletePage(ClusterPage):
    """Shows what would go with the group, its dead letters among it, and asks for its name."""

    template = "groups/delete.html"
    actions = {"post": "group.delete"}

    def get(self, request: HttpRequest, cluster: str, group: str) -> HttpResponse:
        held = self.cluster.ask(group_settings, group).value
        return self.form(group, GroupDeleteForm(expected=group, initial={"etag": etag_of(held)}))

    def post(self, request: HttpRequest, cluster: str, group: str) -> HttpResponse:
        form = GroupDeleteForm(request.POST, expected=group)
        if not form.is_valid():
            return self.form(group, form, status=422)
        given = form.cleaned_data
        before = states(self.cluster.ask(group_settings, group).value)
        with audited(
            request, "group.delete", cluster=cluster, target=group, before=before
        ) as entry:
            check_deletable(cluster, Kind.GROUP, group)
            outcomes = self.cluster.do(
                delete_group,
                group,
                dead_letters=given["dead_letters"],
                expected_etag=given["etag"] or None,
            )
            entry.outcomes(outcomes)
        tell_outcomes(request, outcomes, _("Group “%s” is deleted.") % group)
        return redirect("groups:list", cluster=cluster)

    def form(self, group: str, form: GroupDeleteForm, status: int = 200) -> HttpResponse:
        answer = self.cluster.ask(group_impact, group)
        return self.show(
            title=_("Delete %s") % group,
            crumbs=[*group_crumbs(self.cluster.name, group), Crumb(_("Delete"))],
            status=status,
            group=group,
            answer=answer,
            impact=answer.value,
            protected=is_protected(self.cluster.name, Kind.GROUP, group),
            form=form,
        )


def settings_form(held: Held, data: Any = None) -> GroupSettingsForm:
    """The form filled with the group's settings, those of the first broker where they differ."""
    first = held[0][1]
    form = GroupSettingsForm(data, initial={field: getattr(first, field) for field in FIELDS})
    form.offer_brokers([ref.name for ref, _config in held])
    return form


def group_crumbs(cluster: str, group: str) -> list[Crumb]:
    return [
        Crumb(_("Groups"), reverse("groups:list", args=[cluster])),
        Crumb(group, reverse("groups:detail", args=[cluster, group])),
    ]

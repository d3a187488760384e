"""Pages that change topics: create, edit with the difference shown before, delete."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from console.areas.topics.forms import TopicCreateForm, TopicSettingsForm
from console.audit.recording import audited
from console.frame.access import Need, needs
from console.frame.forms import TypedNameForm
from console.frame.outcomes import tell_outcomes
from console.frame.pages import ClusterPage, Crumb
from console.gateway import AlreadyThere, Changed
from console.gateway.brokers.listing import broker_names
from console.gateway.changes import etag_of, states
from console.gateway.topics.changes import (
    create_topic,
    delete_topic,
    differences,
    topic_impact,
    update_topic,
)
from console.gateway.topics.listing import TopicDetail, topic_detail
from console.resources import history
from console.resources.models import Kind
from console.resources.protection import check_deletable, is_protected


@needs(Need.WRITE)
class TopicCreatePage(ClusterPage):
    template = "topics/create.html"
    actions = {"post": "topic.create"}

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        form = TopicCreateForm(initial={"name": request.GET.get("name", "")})
        return self.form(form)

    def post(self, request: HttpRequest, cluster: str) -> HttpResponse:
        form = TopicCreateForm(request.POST)
        form.offer_brokers(self.cluster.ask(broker_names).value)
        if not form.is_valid():
            return self.form(form, status=422)
        given = form.cleaned_data
        name, wanted = given["name"], form.settings()
        try:
            with audited(request, "topic.create", cluster=cluster, target=name) as entry:
                outcomes = self.cluster.do(create_topic, name, wanted, given["brokers"])
                entry.after = wanted
                entry.outcomes(outcomes)
        except AlreadyThere as taken:
            form.add_error("name", str(taken.detail))
            return self.form(form, status=409)
        tell_outcomes(request, outcomes, _("Topic “%s” is created.") % given["name"])
        return redirect("topics:detail", cluster=cluster, topic=given["name"])

    def form(self, form: TopicCreateForm, status: int = 200) -> HttpResponse:
        form.offer_brokers(self.cluster.ask(broker_names).value)
        title = _("Create a topic")
        crumbs = [Crumb(_("Topics"), reverse("topics:list", args=[self.cluster.name]))]
        return self.show(title=title, crumbs=[*crumbs, Crumb(title)], form=form, status=status)


@needs(Need.WRITE)
class TopicEditPage(ClusterPage):
    """Two steps: the form, and then what it would change on which broker."""

    template = "topics/edit.html"
    actions = {"post": "topic.update"}

    def get(self, request: HttpRequest, cluster: str, topic: str) -> HttpResponse:
        detail = self.cluster.ask(topic_detail, topic).value
        return self.form(detail, settings_form(detail))

    def post(self, request: HttpRequest, cluster: str, topic: str) -> HttpResponse:
        detail = self.cluster.ask(topic_detail, topic).value
        form = settings_form(detail, request.POST)
        if not form.is_valid() or "change" in request.POST:
            return self.form(detail, form, status=200 if form.is_valid() else 422)
        wanted = set(form.cleaned_data["brokers"])
        held = [(ref, config) for ref, config in detail.configs if ref.name in wanted]
        changes = differences(held, form.settings())
        if not changes or "save" not in request.POST:
            return self.form(detail, form, changes=changes, asked=True)
        act: dict[str, Any] = {"cluster": cluster, "target": topic, "before": states(held)}
        etag = request.POST.get("etag")
        try:
            with audited(request, "topic.update", **act) as entry:
                outcomes = self.cluster.do(
                    update_topic, topic, form.settings(), sorted(wanted), etag
                )
                entry.after = form.settings()
                entry.outcomes(outcomes)
        except Changed as changed:
            messages.error(request, f"{changed.detail} {changed.hint}")
            return redirect("topics:edit", cluster=cluster, topic=topic)
        history.keep(request.user, cluster, Kind.TOPIC, topic, changes, outcomes)
        tell_outcomes(request, outcomes, _("Topic “%s” is changed.") % topic)
        return redirect("topics:detail", cluster=cluster, topic=topic)

    def form(
        self, detail: TopicDetail, form: TopicSettingsForm, *, status: int = 200, **more: Any
    ) -> HttpResponse:
        name = detail.row.name
        return self.show(
            title=_("Edit %s") % name,
            crumbs=[*topic_crumbs(self.cluster.name, name), Crumb(_("Edit"))],
            status=status,
            topic=detail,
            past=history.recent(self.cluster.name, Kind.TOPIC, name),
            form=form,
            etag=etag_of(detail.configs),
            **more,
        )


@needs(Need.ADMIN)
class TopicDeletePage(ClusterPage):
    """Shows what would go with the topic, and asks for its name."""

    template = "topics/delete.html"
    actions = {"post": "topic.delete"}

    def get(self, request: HttpRequest, cluster: str, topic: str) -> HttpResponse:
        detail = self.cluster.ask(topic_detail, topic).value
        form = TypedNameForm(expected=topic, initial={"etag": etag_of(detail.configs)})
        return self.form(topic, form)

    def post(self, request: HttpRequest, cluster: str, topic: str) -> HttpResponse:
        form = TypedNameForm(request.POST, expected=topic)
        if not form.is_valid():
            return self.form(topic, form, status=422)
        etag = form.cleaned_data["etag"] or None
        before = states(self.cluster.ask(topic_detail, topic).value.configs)
        with audited(
            request, "topic.delete", cluster=cluster, target=topic, before=before
        ) as entry:
            check_deletable(cluster, Kind.TOPIC, topic)
            outcomes = self.cluster.do(delete_topic, topic, etag)
            entry.outcomes(outcomes)
        tell_outcomes(request, outcomes, _("Topic “%s” is deleted.") % topic)
        return redirect("topics:list", cluster=cluster)

    def form(self, topic: str, form: TypedNameForm, status: int = 200) -> HttpResponse:
        answer = self.cluster.ask(topic_impact, topic)
        return self.show(
            title=_("Delete %s") % topic,
            crumbs=[*topic_crumbs(self.cluster.name, topic), Crumb(_("Delete"))],
            status=status,
            topic_name=topic,
            answer=answer,
            impact=answer.value,
            protected=is_protected(self.cluster.name, Kind.TOPIC, topic),
            form=form,
        )


def settings_form(detail: TopicDetail, data: Any = None) -> TopicSettingsForm:
    """The form filled with the topic's settings, those of the first broker where they differ."""
    first = detail.configs[0][1]
    form = TopicSettingsForm(
        data,
        initial={
            "write_queues": first.write_queue_nums,
            "read_queues": first.read_queue_nums,
            "perm": first.perm,
            "order": first.order,
        },
    )
    form.offer_perm(first.perm)
    form.offer_brokers([ref.name for ref, _config in detail.configs])
    return form


def topic_crumbs(cluster: str, topic: str) -> list[Crumb]:
    return [
        Crumb(_("Topics"), reverse("topics:list", args=[cluster])),
        Crumb(topic, reverse("topics:detail", args=[cluster, topic])),
    ]

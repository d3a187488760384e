"""Pages that create, edit, delete, protect and undo resources of any kind.

`page_urls` returns the URLs of all pages for a kind.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, ClassVar

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from console.audit.recording import audited
from console.frame.access import Need, check_may, need_of, needs
from console.frame.forms import TypedNameForm
from console.frame.outcomes import tell_outcomes
from console.frame.pages import ClusterPage, Crumb
from console.frame.permissions import Scope
from console.frame.targets import target_of
from console.gateway import AlreadyExists, NotAllowedNow, PreconditionFailed
from console.gateway.changes import (
    BrokerOutcome,
    FieldChange,
    configs_on,
    etag_of,
    states,
    states_with,
)
from console.resources import bulk, deletion, history, left_labels
from console.resources.forms import ResourceForm
from console.resources.models import Kind
from console.resources.protection import check_deletable, is_protected, set_protection
from console.resources.resource import Configs, Editable, Resource, risks_of
from console.resources.undo import UndoPage


class EditablePage(ClusterPage):
    """A page of an editable kind. `verb` is the action in the audit list."""

    resource: ClassVar[Editable]
    verb: ClassVar[str]
    actions: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if hasattr(cls, "resource"):
            cls.actions = {"post": cls.resource.action(cls.verb)}

    @classmethod
    def of(cls, resource: Editable) -> Any:
        """The view function for a kind."""
        members = {"resource": resource, **resource.declared_need}
        page = type(f"{resource.kind.name.title()}{cls.__name__}", (cls,), members)
        return page.as_view()  # type: ignore[attr-defined]

    def shared_context(self) -> dict[str, Any]:
        context = super().shared_context()
        return {
            **context,
            "resource": self.resource,
            "texts": self.resource.texts,
            "risks_template": f"{self.resource.namespace}/risks.html",
        }


class ResourcePage(EditablePage):
    """A page of a kind of resource."""

    resource: ClassVar[Resource]


@needs(Need.WRITE)
class CreatePage(ResourcePage):
    template = "resources/create.html"
    verb = "create"
    access_names = Scope.SOME

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        return self.form(self.resource.create_form(initial={"name": request.GET.get("name", "")}))

    def post(self, request: HttpRequest, cluster: str) -> HttpResponse:
        resource = self.resource
        form = resource.create_form(request.POST)
        form.offer_brokers(self.cluster.ask(resource.brokers).value)
        if not form.is_valid():
            return self.form(form, status=422)
        name, settings = form.cleaned_data["name"], form.settings()
        target = replace(target_of(type(self), self.kwargs, {}), name=name)
        check_may(request, need_of(self, request.method), target)
        try:
            with audited(request, resource.action("create"), cluster=cluster, target=name) as entry:
                brokers = form.cleaned_data["brokers"]
                left_labels.forget_before(self.cluster, resource, name, settings, brokers)
                confirmed = resource.confirmed(request.POST)
                outcomes = self.cluster.do(resource.create, name, settings, brokers, **confirmed)
                entry.after = settings
                entry.outcomes(outcomes)
        except AlreadyExists as taken:
            form.add_error("name", str(taken.detail))
            return self.form(form, status=409)
        except NotAllowedNow as refused:
            named = brokers or self.cluster.ask(self.resource.brokers).value
            risks = resource.new_risks(name, settings, named) if resource.new_risks else ()
            if not risks:
                raise
            form.add_error(None, str(refused.detail))
            return self.form(form, status=409, risks=risks)
        return self.created(name, settings, outcomes)

    def created(self, name: str, settings: Any, outcomes: Sequence[BrokerOutcome]) -> HttpResponse:
        """Respond after the creation; `settings` are those of the form."""
        tell_outcomes(self.request, outcomes, str(self.resource.texts.created) % name)
        return redirect(self.resource.url(self.cluster.name, name))

    def form(self, form: ResourceForm, status: int = 200, **more: Any) -> HttpResponse:
        form.offer_brokers(self.cluster.ask(self.resource.brokers).value)
        title = str(self.resource.texts.create_title)
        back = self.resource.list_url(self.cluster.name)
        crumbs = [*self.resource.crumbs(self.cluster.name), Crumb(title)]
        return self.show(title=title, crumbs=crumbs, form=form, back=back, status=status, **more)


class OneEditablePage(EditablePage):
    """A page of a single object; the URL has the name."""

    @property
    def name(self) -> str:
        return str(self.kwargs[self.resource.argument])

    def configs(self) -> Configs:
        """The present configuration on each broker; raises NotFound without the object."""
        return self.resource.configs(self.cluster, self.name)

    def crumbs(self, last: str) -> list[Crumb]:
        return [*self.resource.crumbs(self.cluster.name, self.name), Crumb(last)]

    def shared_context(self) -> dict[str, Any]:
        back = self.resource.url(self.cluster.name, self.name)
        return {**super().shared_context(), "name": self.name, "back": back}


class OneResourcePage(OneEditablePage, ResourcePage):
    """A page of a single resource."""


@needs(Need.WRITE)
class EditPage(OneEditablePage):
    """Edit in two steps: form, then preview of the changes by broker."""

    template = "resources/edit.html"
    verb = "update"

    def get(self, request: HttpRequest, cluster: str, **_names: str) -> HttpResponse:
        configs = self.configs()
        return self.form(configs, self.resource.edit_form.filled(configs))

    def post(self, request: HttpRequest, cluster: str, **_names: str) -> HttpResponse:
        resource, name, configs = self.resource, self.name, self.configs()
        form = resource.edit_form.filled(configs, request.POST)
        if not form.is_valid() or "change" in request.POST:
            return self.form(configs, form, status=200 if form.is_valid() else 422)
        settings, brokers = form.settings(), sorted(set(form.cleaned_data["brokers"]))
        chosen = configs_on(configs, brokers)
        changes = resource.differences(chosen, settings)
        risks = risks_of(self.cluster, resource, name, settings, brokers) if changes else ()
        confirmed = resource.confirmed(request.POST)
        if not changes or "save" not in request.POST or (risks and not confirmed):
            status = 409 if risks and "save" in request.POST else 200
            return self.form(
                configs, form, changes=changes, risks=risks, is_preview=True, status=status
            )
        context: dict[str, Any] = {"cluster": cluster, "target": name, "before": states(chosen)}
        try:
            with audited(request, resource.action("update"), **context) as entry:
                etag = request.POST.get("etag")
                outcomes = self.cluster.do(
                    resource.update, name, settings, brokers, etag, **confirmed
                )
                entry.after = states_with(chosen, settings)
                entry.outcomes(outcomes)
        except PreconditionFailed as changed:
            messages.error(request, f"{changed.detail} {changed.hint}")
            return redirect(resource.url(cluster, name, "edit"))
        history.keep(request.user, cluster, resource.kind, name, changes, outcomes)
        tell_outcomes(request, outcomes, str(resource.texts.changed) % name)
        return redirect(resource.url(cluster, name))

    def form(
        self, configs: Configs, form: ResourceForm, *, status: int = 200, **more: Any
    ) -> HttpResponse:
        fields = [self.resource.fields_of(config) for _ref, config in configs]
        return self.show(
            title=_("Edit %s") % self.name,
            crumbs=self.crumbs(_("Edit")),
            status=status,
            drift=any(settings != fields[0] for settings in fields),
            past=history.recent(self.cluster.name, self.resource.kind, self.name),
            undo=f"{self.resource.namespace}:undo",
            form=form,
            etag=etag_of(configs),
            **more,
        )


@needs(Need.ADMIN)
class DeletePage(OneResourcePage):
    """Shows the impact of a deletion; the user confirms by typing the name."""

    template = "resources/delete.html"
    verb = "delete"

    def get(self, request: HttpRequest, cluster: str, **_names: str) -> HttpResponse:
        initial = {"etag": etag_of(self.configs())}
        return self.form(self.resource.delete_form(expected=self.name, initial=initial))

    def post(self, request: HttpRequest, cluster: str, **_names: str) -> HttpResponse:
        resource, name = self.resource, self.name
        form = resource.delete_form(request.POST, expected=name)
        if not form.is_valid():
            return self.form(form, status=422)
        flags = {flag.name: form.cleaned_data[flag.name] for flag in resource.delete_flags}
        before = states(self.configs())
        with audited(
            request, resource.action("delete"), cluster=cluster, target=name, before=before
        ) as entry:
            check_deletable(cluster, resource.kind, name)
            etag = form.cleaned_data["etag"] or None
            outcomes = deletion.delete_one(
                self.cluster, resource, name, expected_etag=etag, **flags
            )
            entry.outcomes(outcomes)
        tell_outcomes(request, outcomes, str(resource.texts.deleted) % name)
        return redirect(resource.list_url(cluster))

    def form(self, form: TypedNameForm, status: int = 200) -> HttpResponse:
        answer = self.cluster.ask(self.resource.impact, self.name)
        return self.show(
            title=_("Delete %s") % self.name,
            crumbs=self.crumbs(_("Delete")),
            status=status,
            answer=answer,
            impact=answer.value,
            impact_template=f"{self.resource.namespace}/impact.html",
            flags=[form[flag.name] for flag in self.resource.delete_flags],
            protected=is_protected(self.cluster.name, self.resource.kind, self.name),
            form=form,
        )


@needs(Need.ADMIN)
class ProtectPage(ResourcePage):
    """Switches the deletion protection, then redirects to the page of the resource."""

    verb = "protect"

    def post(self, request: HttpRequest, cluster: str, name: str) -> HttpResponse:
        on = request.POST.get("protected") == "on"
        set_protection(request, cluster, self.resource.kind, name, on=on)
        text = _("“%s” is protected.") if on else _("“%s” is no longer protected.")
        messages.success(request, text % name)
        return redirect(self.resource.url(cluster, name))


class EditableUndoPage(EditablePage, UndoPage):
    """Restores the settings from before a change of one object."""

    verb = "undo"

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        return self.resource.kind

    def present(self, name: str) -> dict[tuple[str, str], Any]:
        return {
            (ref.name, field): value
            for ref, config in self.resource.configs(self.cluster, name)
            for field, value in self.resource.fields_of(config).items()
        }

    def restore(self, name: str, lines: Sequence[FieldChange]) -> Sequence[BrokerOutcome]:
        outcomes: list[BrokerOutcome] = []
        ordered = sorted(lines, key=lambda line: line.broker)
        for broker, of_broker in groupby(ordered, key=lambda line: line.broker):
            before = self.resource.settings_from({line.field: line.before for line in of_broker})
            outcomes += self.cluster.do(self.resource.update, name, before, [broker])
        return outcomes

    def back(self, name: str) -> HttpResponse:
        return redirect(self.resource.url(self.cluster.name, name))


@needs(Need.ADMIN)
class BulkDeletePage(ResourcePage):
    """Bulk deletion in two steps: preview with confirmation by the number of names; results."""

    template = "bulk/delete.html"
    verb = "delete-many"

    def post(self, request: HttpRequest, cluster: str) -> HttpResponse:
        names = bulk.read_names(request.POST.getlist("names"))
        if not names:
            messages.warning(request, _("Nothing selected."))
            return redirect(self.resource.list_url(cluster))
        typed = request.POST.get("typed_count", "")
        if "delete" in request.POST and typed == str(len(names)):
            results = deletion.delete_all(
                request, self.cluster, self.resource, names, confirmed=True
            )
            return self.page(results, is_done=True)
        wrong = "delete" in request.POST
        results = deletion.preview(self.cluster, self.resource, names)
        return self.page(results, wrong=wrong, status=422 if wrong else 200)

    def page(
        self,
        results: Sequence[bulk.ItemResult],
        *,
        is_done: bool = False,
        wrong: bool = False,
        status: int = 200,
    ) -> HttpResponse:
        title = _("Delete selected")
        return self.show(
            title=title,
            crumbs=[*self.resource.crumbs(self.cluster.name), Crumb(title)],
            status=status,
            results=results,
            summary=bulk.summary(results),
            is_done=is_done,
            wrong=wrong,
            back=self.resource.list_url(self.cluster.name),
            detail=f"{self.resource.namespace}:detail",
        )


def page_urls(resource: Resource, create: type[CreatePage] = CreatePage) -> list[URLPattern]:
    """URLs of all pages of this module for a kind of resource."""
    one, many = resource.argument, resource.path
    return [
        path(f"{many}/<name:{one}>/edit/", EditPage.of(resource), name="edit"),
        path(f"{many}/<name:{one}>/delete/", DeletePage.of(resource), name="delete"),
        path(f"{many}/<name:name>/protect/", ProtectPage.of(resource), name="protect"),
        path(f"{many}/<name:name>/undo/<int:number>/", EditableUndoPage.of(resource), name="undo"),
        path(f"delete-{many}/", BulkDeletePage.of(resource), name="bulk-delete"),
        path(f"create-{many.removesuffix('s')}/", create.of(resource), name="create"),
    ]

"""The page of definitions: download, preview of a document, application with results."""

from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from console.areas.definitions.forms import DefinitionsForm
from console.areas.definitions.planning import (
    APPLY_ACTION,
    Plan,
    UnusableDefinitions,
    apply,
    export_text,
    left_out,
    plan,
)
from console.areas.definitions.reader import Reader
from console.areas.definitions.requests import readable_sources
from console.frame.access import Need, needs
from console.frame.pages import ClusterPage
from console.frame.versions import is_outdated, version_of

YAML = "application/yaml"


@needs(Need.ADMIN)
class DefinitionsPage(ClusterPage):
    """A form; after the preview the differences; after the application one result per object."""

    template = "definitions/page.html"
    actions = {"post": APPLY_ACTION}

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        return self.show_form(self.form())

    def post(self, request: HttpRequest, cluster: str) -> HttpResponse:
        form = self.form(request.POST, request.FILES)
        if not form.is_valid():
            return self.show_form(form, status=400)
        fields = form.cleaned_data
        text = fields["file"] or fields["text"]
        if fields["source"]:
            text = export_text(Reader(request.user, fields["source"]))[0]
        try:
            planned = plan(self.reader, text)
        except UnusableDefinitions as fault:
            form.add_error(None, str(fault.detail))
            return self.show_form(form, status=400)
        shown = text if isinstance(text, str) else text.decode()
        if "apply" not in request.POST:
            return self.show_plan(planned, shown)
        if is_outdated(request, _version(planned)):
            return self.show_plan(planned, shown, status=HTTPStatus.CONFLICT)
        return self.show_plan(planned, shown, apply(request, self.cluster, planned))

    @property
    def reader(self) -> Reader:
        return Reader(self.request.user, self.cluster.name)

    def form(self, *data: Any, **more: Any) -> DefinitionsForm:
        sources = readable_sources(self.request, self.cluster.name)
        return DefinitionsForm(*data, sources=sources, **more)

    def show_form(self, form: DefinitionsForm, status: int = 200) -> HttpResponse:
        notes = left_out(self.reader)
        return self.show(title=_("Definitions"), form=form, left_out=notes, status=status)

    def show_plan(
        self, planned: Plan, text: str, results: object = None, *, status: int = 200
    ) -> HttpResponse:
        """Show differences or results; before the application, the form has the text to edit."""
        return self.show(
            title=_("Definitions"),
            form=self.form(initial={} if results else {"text": text}),
            status=status,
            plan=planned,
            version=_version(planned),
            outdated=status == HTTPStatus.CONFLICT,
            text=text,
            results=results,
            failed=[each for each in results or () if each.error],  # type: ignore[attr-defined]
        )


def _version(planned: Plan) -> str:
    """The version of the differences that a preview shows."""
    drift = planned.drift
    return version_of([(i.kind, i.name, str(i.action), i.changes, i.missing) for i in drift])


@needs(Need.ADMIN)
class DownloadView(ClusterPage):
    """The definitions of the cluster that the user may read, as a file."""

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        text, _notes = export_text(Reader(request.user, cluster))
        response = HttpResponse(text, content_type=f"{YAML}; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="{self.cluster.name}.yaml"'
        return response

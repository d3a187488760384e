"""The form before an export of a list: row count, order, file format."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from rest_framework.request import Request

from console.audit.recording import audited
from console.frame.access import Need, check_may, needs
from console.frame.forms import TablerForm
from console.frame.pages import ClusterPage, Crumb
from console.frame.permissions import Target
from console.frame.tables import SEARCH_CHARS_MAX, TableQuery
from console.gateway import NotFound
from console.services.exports import export_job, tables
from console.services.exports.files import FORMATS, ROWS_MAX, ROWS_USUAL, SHEET_ROWS_MAX
from console.services.exports.tables import Asked, Found, Table
from console.services.jobs.errors import AlreadyActive
from console.web.dependencies import redis_problem

START_ACTION = "table.export"


class TableForm(TablerForm):
    """Search, filter and order of the list, file format, and maximum row count."""

    q = forms.CharField(
        label=gettext_lazy("Search"), max_length=SEARCH_CHARS_MAX, required=False, strip=True
    )
    filter = forms.ChoiceField(label=gettext_lazy("Filter"), required=False)
    ordering = forms.ChoiceField(label=gettext_lazy("Order by"), required=False)
    format = forms.ChoiceField(label=gettext_lazy("Format"), choices=list(FORMATS.items()))
    most = forms.IntegerField(
        label=gettext_lazy("Maximum rows"), min_value=1, max_value=ROWS_MAX, initial=ROWS_USUAL
    )

    def __init__(self, table: Table, data: Mapping[str, Any]) -> None:
        super().__init__(data)
        self.table = table
        self._offer("filter", [("", gettext_lazy("All")), *table.choices.items()], table.choices)
        self._offer("ordering", _orders(table), table.listing)
        if table.listing is None:
            del self.fields["q"]

    def _offer(self, name: str, choices: list[tuple[str, Any]], offered: Any) -> None:
        """Set the choices of a field; a field without choices is removed from the form."""
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices
        if not offered:
            del self.fields[name]

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if cleaned.get("format") == "xlsx" and (cleaned.get("most") or 0) > SHEET_ROWS_MAX:
            text = _("An XLSX sheet may have at most %(most)s rows.")
            self.add_error("most", text % {"most": SHEET_ROWS_MAX})
        return cleaned

    def job_inputs(self) -> dict[str, Any]:
        """The inputs of the export job, as JSON values."""
        cleaned = self.cleaned_data
        return {
            "table": self.table.name,
            "q": cleaned.get("q", ""),
            "filter": cleaned.get("filter", ""),
            "ordering": cleaned.get("ordering") or "name",
            "format": cleaned["format"],
            "most": cleaned["most"],
        }


def _orders(table: Table) -> list[tuple[str, Any]]:
    """Ascending and descending order of every sortable column."""
    columns = [column for column in table.listing or () if column.key is not None]
    return [
        (f"{sign}{column.name}", format_lazy("{title} {arrow}", title=column.title, arrow=arrow))
        for column in columns
        for sign, arrow in (("", "↑"), ("-", "↓"))
    ]


@needs(Need.WRITE)
class TablePage(ClusterPage):
    """The export form of a list, with the current row count."""

    writes_cluster = False
    template = "exports/table.html"
    actions = {"post": START_ACTION}

    def get(self, request: HttpRequest, cluster: str, table: str) -> HttpResponse:
        exported = table_named(table)
        check_table(request, cluster, exported)
        return self.form(TableForm(exported, initial_values(exported, request.GET)))

    def post(self, request: HttpRequest, cluster: str, table: str) -> HttpResponse:
        exported = table_named(table)
        check_table(request, cluster, exported)
        form = TableForm(exported, request.POST)
        if not form.is_valid():
            return self.form(form)
        inputs = form.job_inputs()
        try:
            with audited(request, START_ACTION, cluster=cluster, target=table) as entry:
                job = export_job.begin(self.cluster, inputs, by=request.user)
                entry.after = {"job": job.pk, **inputs}
        except AlreadyActive as active:
            job = active.job
        return redirect("jobs:detail", cluster, job.pk)

    def form(self, form: TableForm) -> HttpResponse:
        table, found = form.table, None
        is_valid = form.is_valid()
        if is_valid:
            found = self.found(table, form.job_inputs())
        return self.show(
            title=_("Export a list"),
            crumbs=[
                Crumb(str(table.title), reverse(table.page, args=[self.cluster.name])),
                Crumb(_("Export")),
            ],
            form=form,
            table=table,
            found=found,
            failures=found.failures if found else (),
            redis_problem=redis_problem(),
            status=200 if is_valid else 422,
        )

    def found(self, table: Table, inputs: Mapping[str, Any]) -> Found:
        return table.found(self.cluster, Asked(inputs["q"], inputs["filter"], inputs["ordering"]))


def check_table(request: HttpRequest | Request, cluster: str, table: Table) -> None:
    """Raise PermissionDenied without the right to read the whole list."""
    check_may(request, Need.READ, Target(table.resource, cluster))


def table_named(name: str) -> Table:
    table = tables.find(name)
    if table is None:
        raise NotFound(format_lazy(gettext_lazy("There is no list “{name}”."), name=name))
    return table


def initial_values(table: Table, params: Mapping[str, str]) -> dict[str, str]:
    """Form values from the query string of the list page; invalid parameters are ignored."""
    values = {"format": "jsonl", "most": str(ROWS_USUAL), "ordering": "name"}
    if table.listing is not None:
        query = TableQuery.read(params, table.listing, default="name")
        values |= {"q": query.search.replace("\x00", ""), "ordering": query.ordering}
    chosen = params.get(table.choice, "")
    return values | {"filter": chosen if chosen in table.choices else ""}

"""Pages of the audit log: filtered rows and export."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.audit.changes import changes_of
from console.audit.filters import AuditFilter
from console.audit.models import AuditRow, Result
from console.frame.access import Need, needs
from console.frame.csv_cells import csv_line
from console.frame.forms import TablerForm, name_zone
from console.frame.pages import Crumb, Page

PAGE_ROWS = 50
EXPORT_ROWS_MAX = 100_000
ROWS_AT_ONCE = 500
FIELDS = (
    *("id", "at", "finished_at", "username", "role", "token", "via", "source", "request_id"),
    *("action", "cluster", "target", "result", "reason", "before", "after", "outcomes"),
)
STATES = frozenset({"before", "after", "outcomes"})
CURSOR_DIGITS_MAX = 18
NUMBER_MAX = 10**CURSOR_DIGITS_MAX


class AuditForm(TablerForm):
    """The filter form above the rows."""

    username = forms.CharField(label=gettext_lazy("User"), required=False)
    cluster = forms.CharField(label=gettext_lazy("Cluster"), required=False)
    action = forms.CharField(label=gettext_lazy("Action"), required=False)
    target = forms.CharField(label=gettext_lazy("Target"), required=False)
    result = forms.ChoiceField(
        label=gettext_lazy("Result"),
        required=False,
        choices=[("", gettext_lazy("Any")), *Result.choices],
    )
    since = forms.CharField(
        label=gettext_lazy("From"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}),
    )
    until = forms.CharField(
        label=gettext_lazy("Until"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("since", "until"):
            name_zone(self.fields[name])


@needs(Need.ADMIN)
class AuditPage(Page):
    """Rows, newest first; the URL holds filter and cursor."""

    template = "audit/list.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        form, status = AuditForm(request.GET), 200
        try:
            found = AuditFilter.read(request.GET)
        except ValidationError as error:
            for field, reasons in error.message_dict.items():
                form.errors.setdefault(field, form.error_class()).extend(reasons)
            found, status = AuditFilter.read({}), 400
        before = read_cursor(request.GET.get("before", ""))
        older = found.rows if before is None else found.rows.filter(pk__lt=before)
        rows = list(older[: PAGE_ROWS + 1])
        last = rows[:PAGE_ROWS][-1].pk if rows else 0
        return self.show(
            title=_("Audit"),
            status=status,
            form=form,
            rows=[(row, changes_of(row.before, row.after)) for row in rows[:PAGE_ROWS]],
            total=found.rows.count(),
            more=urlencode({**found.given, "before": last}) if len(rows) > PAGE_ROWS else "",
            is_first_page=before is None,
            filtered=bool(found.given),
            query=urlencode(found.given),
            days=settings.AUDIT_DAYS,
            rows_max=settings.AUDIT_ROWS_MAX,
        )


@needs(Need.ADMIN)
class AuditRowPage(Page):
    """One audit row with all fields."""

    template = "audit/row.html"

    def get(self, request: HttpRequest, number: int) -> HttpResponse:
        row = AuditRow.objects.filter(pk=number).first() if number < NUMBER_MAX else None
        if row is None:
            raise Http404
        return self.show(
            title=_("Audit row %(number)d") % {"number": number},
            crumbs=[Crumb(_("Audit"), reverse("audit:list")), Crumb(str(number))],
            row=row,
            changes=changes_of(row.before, row.after),
            states=[
                (title, json.dumps(value, indent=2, ensure_ascii=False))
                for title, value in (
                    (_("State before"), row.before),
                    (_("State after"), row.after),
                    (_("Results"), row.outcomes),
                )
                if value is not None
            ],
        )


@needs(Need.ADMIN)
def export(request: HttpRequest, form: str) -> StreamingHttpResponse:
    """Export the filtered rows as CSV or JSON Lines."""
    if form not in EXPORTS:
        raise Http404
    try:
        rows = AuditFilter.read(request.GET).rows[:EXPORT_ROWS_MAX]
    except ValidationError as error:
        raise Http404(str(error)) from error
    lines, kind = EXPORTS[form]
    name = f"audit-{timezone.now():%Y%m%d-%H%M%S}.{form}"
    return StreamingHttpResponse(
        lines(rows),
        content_type=f"{kind}; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def row_dict(row: AuditRow) -> dict[str, Any]:
    """Return a row as plain values, times in ISO 8601."""
    found = {name: getattr(row, name) for name in FIELDS}
    for name in ("at", "finished_at"):
        found[name] = found[name].isoformat(timespec="milliseconds") if found[name] else None
    return found


def json_lines(rows: Any) -> Iterator[str]:
    for row in rows.iterator(chunk_size=ROWS_AT_ONCE):
        yield json.dumps(row_dict(row), ensure_ascii=False) + "\n"


def csv_lines(rows: Any) -> Iterator[str]:
    """Yield CSV lines. Cells are escaped, so that a spreadsheet runs no formula from user input."""
    yield csv_line(FIELDS)
    for row in rows.iterator(chunk_size=ROWS_AT_ONCE):
        yield csv_line(_cell(name, value) for name, value in row_dict(row).items())


def _cell(name: str, value: Any) -> Any:
    is_json = name in STATES and value is not None
    return json.dumps(value, ensure_ascii=False) if is_json else value


EXPORTS = {"csv": (csv_lines, "text/csv"), "jsonl": (json_lines, "application/jsonl")}


def read_cursor(text: str) -> int | None:
    usable = text.isascii() and text.isdigit() and len(text) <= CURSOR_DIGITS_MAX
    return int(text) if usable else None

"""The page that adds, changes and removes the labels of a topic or group.

The form has a row per label: key and value. It is complete without JavaScript: buttons add and
remove rows, and only Save changes something.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from console.audit.recording import audited
from console.frame.access import Need, needs
from console.frame.versions import CHANGED_MEANWHILE, posted_version, shown_version
from console.gateway import GatewayError, PreconditionFailed
from console.resources import labels
from console.resources.labels import LABELS_MAX, Labels
from console.resources.pages import OneResourcePage
from console.resources.resource import Resource

#: Rows of the form of an object without labels.
ROWS_MIN: Final = 3
#: Maximum number of rows that a form may send: a label too many is refused, not dropped.
ROWS_MAX: Final = LABELS_MAX + 1


@dataclass(frozen=True, slots=True)
class Row:
    """A key and a value of the form, with the rules that they break."""

    key: str = ""
    value: str = ""
    key_error: Any = ""
    value_error: Any = ""
    autofocus: bool = False

    @property
    def is_empty(self) -> bool:
        return not self.key and not self.value

    @property
    def is_wrong(self) -> bool:
        return bool(self.key_error or self.value_error)


def read_rows(request: HttpRequest) -> list[Row]:
    """Return the rows of the form, at most ROWS_MAX, without blanks at the ends."""
    pairs = zip(request.POST.getlist("key"), request.POST.getlist("value"), strict=False)
    return [Row(key.strip(), value.strip()) for key, value in list(pairs)[:ROWS_MAX]]


def checked_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with the rules that they break; empty rows break none."""
    seen: set[str] = set()
    found = []
    for row in rows:
        key_error = value_error = ""
        if not row.is_empty:
            if not labels.is_key(row.key):
                key_error = labels.key_rule(row.key)
            elif row.key in seen:
                key_error = _("{key} is there twice; a key has one value.").format(key=row.key)
            if not labels.is_value(row.value):
                value_error = labels.value_rule(row.key)
            seen.add(row.key)
        found.append(replace(row, key_error=key_error, value_error=value_error))
    wrong = next((number for number, row in enumerate(found) if row.is_wrong), None)
    if wrong is not None:
        found[wrong] = replace(found[wrong], autofocus=True)
    return found


def filled(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with empty rows for further labels, at most LABELS_MAX rows."""
    kept = [row for row in rows if not row.is_empty]
    wanted = min(LABELS_MAX, max(ROWS_MIN, len(kept) + 1))
    return kept + [Row()] * max(0, wanted - len(kept))


@needs(Need.WRITE)
class LabelsPage(OneResourcePage):
    """The form of the labels of one object."""

    template = "resources/edit_labels.html"
    verb = "label"

    def get(self, request: HttpRequest, cluster: str, **_names: str) -> HttpResponse:
        self.configs()  # 404 for an object that does not exist
        return self.form(filled([Row(key, value) for key, value in self.held().items()]))

    def post(self, request: HttpRequest, cluster: str, **_names: str) -> HttpResponse:
        self.configs()
        rows = read_rows(request)
        if "add" in request.POST or "remove" in request.POST:
            return self.form(self.changed_rows(rows))
        rows = checked_rows(rows)
        if any(row.is_wrong for row in rows):
            return self.form(filled(rows), status=422)
        wanted = {row.key: row.value for row in rows if not row.is_empty}
        before = self.held()
        if wanted == before:
            messages.info(request, _("No changes: the labels already have these values."))
            return redirect(self.resource.url(cluster, self.name))
        try:
            self.save(wanted, before)
        except PreconditionFailed:
            current = labels.version(self.held())
            return self.form(filled(rows), CHANGED_MEANWHILE, status=409, version=current)
        except ValidationError as wrong:
            return self.form(filled(rows), " ".join(wrong.messages), status=422)
        except GatewayError as refused:
            return self.form(filled(rows), refused.detail, status=409)
        messages.success(request, _("The labels of “%s” are saved.") % self.name)
        return redirect(self.resource.url(cluster, self.name))

    def held(self) -> Labels:
        return labels.labels_of(self.cluster.name, self.resource.kind, self.name)

    def changed_rows(self, rows: list[Row]) -> list[Row]:
        """The rows after a press of Add or Remove, with the focus at the next input."""
        removed = self.request.POST.get("remove", "")
        at = len(rows)
        if removed.isascii() and removed.isdecimal() and len(removed) < 3 and int(removed) < at:
            at = int(removed)
            del rows[at]
        else:
            rows = rows[:LABELS_MAX]
            rows += [Row()] * (len(rows) < LABELS_MAX)
            at = len(rows) - 1
        rows = rows or [Row()]
        at = min(at, len(rows) - 1)
        rows[at] = replace(rows[at], autofocus=True)
        return rows

    def save(self, wanted: Labels, before: Labels) -> None:
        request, cluster, kind = self.request, self.cluster.name, self.resource.kind
        about: dict[str, Any] = {"cluster": cluster, "target": self.name, "before": before}
        with audited(request, self.resource.action(self.verb), **about) as entry:
            by, expected = request.user.get_username(), posted_version(request)
            entry.after = labels.change(
                cluster, kind, self.name, by, lambda _held: wanted, expected
            )

    def form(
        self, rows: Sequence[Row], error: Any = "", *, status: int = 200, **more: Any
    ) -> HttpResponse:
        more.setdefault("version", shown_version(self.request, labels.version(self.held())))
        return self.show(
            title=_("Labels of %s") % self.name,
            crumbs=self.crumbs(_("Labels")),
            status=status,
            rows=rows,
            error=error,
            most=LABELS_MAX,
            may_add=len(rows) < LABELS_MAX,
            **more,
        )


def label_page_urls(resource: Resource) -> list[URLPattern]:
    """The URL of the labels page of a kind of resource."""
    one, many = resource.argument, resource.path
    return [path(f"{many}/<name:{one}>/labels/", LabelsPage.of(resource), name="labels")]

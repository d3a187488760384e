"""Pages of the area `findings`: the list, and the parts on other pages."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from console.frame.pages import ClusterPage
from console.frame.tables import TableQuery
from console.services.findings import listing
from console.services.findings.finding import Report, Target
from console.services.findings.reports import current_report
from console.services.findings.rules import RULES

#: Maximum number of findings on the overview.
SHOWN_ON_OVERVIEW = 3
#: Maximum length of the name of an object, characters.
NAME_CHARS_MAX = 512


class FindingsPage(ClusterPage):
    """All findings with filters, and the result of every rule."""

    template = "findings/list.html"
    part = "findings/list_rows.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        report = current_report(self.cluster)
        params = request.GET
        severity = _known(params.get("severity", ""), listing.SEVERITIES)
        kind = _known(params.get("kind", ""), listing.KIND_TITLES)
        rule = _known(params.get("rule", ""), {each.id: each for each in RULES})
        query = TableQuery.read(params, listing.COLUMNS, default="severity")
        found = query.matching(
            listing.passing(report.findings, severity=severity, kind=kind, rule=rule)
        )
        of_kind = listing.passing(report.findings, kind=kind, rule=rule)
        of_severity = listing.passing(report.findings, severity=severity, rule=rule)
        return self.show(
            title=_("Findings"),
            **verdict_context(report),
            page=query.page(found),
            severity=severity,
            kind=kind,
            rule=rule,
            severity_chips=listing.severity_chips(of_kind),
            severity_all=len(of_kind),
            kind_chips=listing.kind_chips(of_severity),
            kind_all=len(of_severity),
        )


class VerdictPart(ClusterPage):
    """The verdict on the overview page, which polls this part."""

    template = "findings/verdict.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        report = current_report(self.cluster)
        return self.show(title=_("Findings"), **verdict_context(report))


class ObjectPart(ClusterPage):
    """The findings of one object, on the page of the object."""

    template = "findings/of_object.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        report = current_report(self.cluster)
        kind = _known(request.GET.get("kind", ""), listing.KIND_TITLES)
        name = request.GET.get("name", "")[:NAME_CHARS_MAX]
        return self.show(title=_("Findings"), **object_context(report, kind, name))


def verdict_context(report: Report | None) -> dict[str, Any]:
    """Context of `findings/verdict.html`; None: there is no recent report."""
    if report is None:
        return {"report": None}
    return {
        "report": report,
        "verdict_title": listing.VERDICTS[report.verdict],
        "worst": [each for each in report.findings if each.severity != "advice"][
            :SHOWN_ON_OVERVIEW
        ],
    }


def object_context(report: Report | None, kind: str, name: str) -> dict[str, Any]:
    """Context of `findings/of_object.html`."""
    if report is None or not kind:
        return {"findings": ()}
    return {"findings": report.of(Target(kind, name))}  # type: ignore[arg-type]


def _known(value: str, known: Any) -> str:
    return value if value in known else ""

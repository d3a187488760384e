"""Reports in Django's database: workers write them, every process reads them.

A report holds its texts in all languages of the console, because its readers have different ones.
Titles of rules are not stored. A body that cannot be read is of another version of the console; the
next evaluation replaces it.
"""

import logging
import zlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from django.conf import settings
from django.utils.translation import get_language, override

from console.gateway import Cluster
from console.services.findings.finding import (
    Check,
    Finding,
    NotChecked,
    Report,
    Severity,
    Target,
)
from console.services.findings.models import StoredReport
from console.services.findings.rules import RULES

log = logging.getLogger(__name__)

#: Level of zlib: speed matters more than size.
LEVEL: Final = 1
#: Maximum size of an uncompressed body, bytes.
BODY_BYTES_MAX: Final = 64 * 1024 * 1024
TITLES: Final = {rule.id: rule.title for rule in RULES}


class Text:
    """A text in all languages of the console; shown in the language of the reader."""

    __slots__ = ("by_language",)

    def __init__(self, by_language: Mapping[str, str]) -> None:
        self.by_language = by_language

    def __str__(self) -> str:
        language = get_language() or settings.LANGUAGE_CODE
        return self.by_language.get(language) or next(iter(self.by_language.values()), "")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Text) and self.by_language == other.by_language

    def __hash__(self) -> int:
        return hash(tuple(self.by_language.items()))


def in_all_languages(text: Any) -> dict[str, str]:
    """Return a lazy text by language."""
    found = {}
    for language, _title in settings.LANGUAGES:
        with override(language):
            found[language] = str(text)
    return found


class _Finding(msgspec.Struct, array_like=True):
    rule: str
    severity: Severity
    kind: str
    name: str
    text: dict[str, str]
    advice: dict[str, str]
    values: dict[str, Any]
    since_ms: int | None
    as_of_ms: int | None
    related: list[tuple[str, str]]


class _Check(msgspec.Struct, array_like=True):
    rule: str
    findings: int
    left_out: int
    not_checked: list[tuple[dict[str, str], str]]


class _Body(msgspec.Struct):
    took_ms: int
    findings: list[_Finding]
    checks: list[_Check]
    counts: dict[str, int]


def save(cluster: Cluster, report: Report) -> None:
    """Store a report as the last one of the cluster, unless a later one is stored."""
    values = {
        "namesrv_addr": cluster.namesrv_addr,
        "taken_ms": report.taken_ms,
        "body": encoded(report),
    }
    rows = StoredReport.objects.filter(cluster=cluster.name)
    if rows.filter(taken_ms__lte=report.taken_ms).update(**values):
        return
    if not rows.exists():
        StoredReport.objects.bulk_create(
            [StoredReport(cluster=cluster.name, **values)], ignore_conflicts=True
        )


#: The decoded report of each cluster and its time: one decoding for all readers of a process.
_decoded: dict[str, tuple[int, Report]] = {}


def load(cluster: Cluster, since_ms: int) -> Report | None:
    """Return the last report; None without a report of `since_ms` or later."""
    rows = StoredReport.objects.filter(
        cluster=cluster.name, namesrv_addr=cluster.namesrv_addr, taken_ms__gte=since_ms
    )
    taken_ms = rows.values_list("taken_ms", flat=True).first()
    if taken_ms is None:
        return None
    known = _decoded.get(cluster.name)
    if known is not None and known[0] == taken_ms:
        return known[1]
    row = rows.first()
    report = None if row is None else decoded(row.taken_ms, bytes(row.body))
    if report is not None:
        _decoded[cluster.name] = report.taken_ms, report
    return report


def encoded(report: Report) -> bytes:
    """Return the body of a report."""
    body = _Body(
        took_ms=report.took_ms,
        findings=[
            _Finding(
                rule=each.rule,
                severity=each.severity,
                kind=each.target.kind,
                name=each.target.name,
                text=in_all_languages(each.text),
                advice=in_all_languages(each.advice),
                values=dict(each.values),
                since_ms=each.since_ms,
                as_of_ms=each.as_of_ms,
                related=[(target.kind, target.name) for target in each.related],
            )
            for each in report.findings
        ],
        checks=[
            _Check(
                rule=each.rule,
                findings=each.findings,
                left_out=each.left_out,
                not_checked=[(in_all_languages(one.reason), one.where) for one in each.not_checked],
            )
            for each in report.checks
        ],
        counts=dict(report.counts),
    )
    return zlib.compress(msgspec.json.encode(body), LEVEL)


def decoded(taken_ms: int, data: bytes) -> Report | None:
    """Return the report of a body; None for a body of another version."""
    try:
        inflater = zlib.decompressobj()
        body = msgspec.json.decode(inflater.decompress(data, BODY_BYTES_MAX), type=_Body)
    except (zlib.error, msgspec.MsgspecError):
        log.warning("a stored report cannot be read; the next evaluation replaces it")
        return None
    findings = tuple(
        Finding(
            rule=each.rule,
            severity=each.severity,
            target=_target(each.kind, each.name),
            text=Text(each.text),
            advice=Text(each.advice),
            values=each.values,
            since_ms=each.since_ms,
            as_of_ms=each.as_of_ms,
            related=tuple(_target(*one) for one in each.related),
        )
        for each in body.findings
    )
    checks = tuple(
        Check(
            rule=each.rule,
            title=TITLES[each.rule],
            findings=each.findings,
            left_out=each.left_out,
            not_checked=tuple(
                NotChecked(Text(reason), where) for reason, where in each.not_checked
            ),
        )
        for each in body.checks
        if each.rule in TITLES
    )
    return Report(taken_ms, body.took_ms, findings, checks, body.counts)


def _target(kind: str, name: str) -> Target:
    return Target(kind, name)  # type: ignore[arg-type]  # a report has only known kinds

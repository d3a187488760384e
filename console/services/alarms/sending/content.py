"""What a notice says: lines of the first episodes, and how many more there are."""

from dataclasses import dataclass, field
from typing import Any, Final

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import override

from console.services.alarms.models import Delivery, Episode, Event
from console.services.alarms.titles import kept_title
from console.services.findings.listing import SEVERITIES

#: Maximum number of episodes that a notice lists; the rest is counted.
EPISODES_SHOWN_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice in one language; `lines` has a line per listed episode. The title of the rule is in
    `title`; `rule` is its name, the same in every language."""

    number: int
    event: str
    cluster: str
    rule: str
    severity: str
    title: str
    lines: tuple[str, ...]
    note: str
    #: Address of the page, empty without CONSOLE_URL.
    url: str
    at_ms: int
    alarms: tuple[dict[str, Any], ...] = ()
    total: int = 0
    is_test: bool = False
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def more(self) -> int:
        return max(0, self.total - len(self.alarms))

    @property
    def text(self) -> str:
        """The notice as lines of plain text."""
        tail = [self.note] if self.note else []
        return "\n".join([self.title, *self.lines, *tail, *([self.url] if self.url else [])])


def notice_of(delivery: Delivery, language: str) -> Notice:
    """Return the notice of a delivery."""
    rows = Episode.objects.filter(notified__delivery=delivery).order_by("pk")
    total = rows.count()
    shown = list(rows[:EPISODES_SHOWN_MAX])
    with override(language):
        lines = [f"• {_line(each, language)}" for each in shown]
        if total > len(shown):
            lines.append(_("… and %(count)s more") % {"count": total - len(shown)})
        return Notice(
            number=delivery.pk,
            event=delivery.event,
            cluster=delivery.cluster,
            rule=delivery.rule_name,
            severity=delivery.severity,
            title=_title(delivery, total),
            lines=tuple(lines),
            note=delivery.note,
            url=_url(delivery.cluster),
            at_ms=delivery.created_ms,
            alarms=tuple(alarm_of(each, language) for each in shown),
            total=total,
        )


def test_notice(language: str, cluster: str, at_ms: int) -> Notice:
    """Return the notice of the test button."""
    with override(language):
        return Notice(
            number=0,
            event="test",
            cluster=cluster,
            rule="test",
            severity="advice",
            title=_("Gantry: test of a receiver"),
            lines=(_("Notices of alarms arrive here."),),
            note="",
            url=_url(cluster),
            at_ms=at_ms,
            is_test=True,
        )


def _title(delivery: Delivery, total: int) -> str:
    sides = {
        "severity": SEVERITIES[delivery.severity],
        "rule": kept_title(delivery.rule_name, delivery.rule),
        "cluster": delivery.cluster,
        "count": total,
    }
    if delivery.event == Event.RESOLVED:
        return _("[RESOLVED] %(rule)s · cluster %(cluster)s · %(count)s") % sides
    return _("[%(severity)s] %(rule)s · cluster %(cluster)s · %(count)s") % sides


def _line(episode: Episode, language: str) -> str:
    name = episode.name or episode.cluster
    return f"{name}: {text_of(episode, language)}"


def text_of(episode: Episode, language: str) -> str:
    """Return the problem in a language."""
    texts = episode.text if isinstance(episode.text, dict) else {}
    return str(texts.get(language) or next(iter(texts.values()), ""))


def alarm_of(episode: Episode, language: str) -> dict[str, Any]:
    """Return an episode as JSON of a webhook."""
    return {
        "id": episode.pk,
        "object": {"kind": episode.kind, "name": episode.name},
        "finding": episode.detail or None,
        "severity": episode.severity,
        "text": text_of(episode, language),
        "value": episode.value,
        "fired_ms": episode.fired_ms,
        "resolved_ms": episode.resolved_ms,
        "end_reason": episode.end_reason or None,
    }


def _url(cluster: str) -> str:
    if not settings.CONSOLE_URL or not cluster:
        return ""
    return settings.CONSOLE_URL + reverse("alarms:list", kwargs={"cluster": cluster})

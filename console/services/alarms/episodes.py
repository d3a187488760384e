"""Reads of episodes for pages and REST requests; acknowledgement."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from console.frame.tables import Column, Columns
from console.gateway import NotAllowedNow, NotFound, now_ms
from console.services.alarms.feed import announce
from console.services.alarms.models import (
    Delivery,
    DeliveryState,
    Episode,
    EpisodeState,
    Event,
    Silence,
)
from console.services.alarms.sending.content import text_of
from console.services.alarms.silences import active_silences
from console.services.alarms.titles import kept_title, title_of
from console.services.findings.finding import Severity

#: Maximum number of resolved episodes in a list, the newest first.
HISTORY_MAX: Final = 2_000
#: Reasons for the end of an episode.
END_REASONS: Final = {
    "cleared": _("The condition is not met any more."),
    "no-data": _("No value for 15 minutes: the object is gone, or nothing measures it."),
    "rule-off": _("The rule was switched off."),
    "rule-changed": _("The rule was changed."),
    "rule-deleted": _("The rule was deleted."),
}
SHOWN: Final = {
    "firing": _("Firing"),
    "acknowledged": _("Acknowledged"),
    "silenced": _("Silenced"),
    "pending": _("Pending"),
    "resolved": _("Resolved"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """An episode with the silence that matches it."""

    episode: Episode
    silence: Silence | None

    @property
    def shown(self) -> str:
        """The state that pages and REST requests show: a key of SHOWN."""
        if self.episode.state != EpisodeState.FIRING:
            return str(self.episode.state)
        if self.episode.acknowledged_ms is not None:
            return "acknowledged"
        return "firing" if self.silence is None else "silenced"

    @property
    def name(self) -> str:
        """Unique, for lists and cursors; begins with the object. Searches compare the name."""
        each = self.episode
        # The title, too: the page shows the title, and the REST API the name.
        rule = " ".join(dict.fromkeys((each.rule_name, self.rule_title)))
        return f"{each.name or each.cluster} {rule} {each.detail} {each.pk}"

    @property
    def text(self) -> str:
        return text_of(self.episode, get_language() or "en")

    @property
    def rule_title(self) -> str:
        rule = self.episode.rule
        return kept_title(self.episode.rule_name, None) if rule is None else title_of(rule)

    @property
    def end_reason(self) -> Any:
        return END_REASONS.get(self.episode.end_reason, "")


COLUMNS: Columns[Row] = Columns(
    Column("severity", _("Severity"), lambda row: Severity(row.episode.severity).rank),
    Column("name", _("Object"), lambda row: row.name),
    Column("rule", _("Rule"), lambda row: row.rule_title),
    Column("fired_ms", _("Since"), lambda row: row.episode.fired_ms or row.episode.begun_ms),
    Column("resolved_ms", _("Resolved"), lambda row: row.episode.resolved_ms),
)


def open_rows(cluster: str) -> list[Row]:
    """Return the pending and firing episodes of a cluster."""
    states = (EpisodeState.PENDING, EpisodeState.FIRING)
    episodes = Episode.objects.filter(cluster=cluster, state__in=states).select_related("rule")
    return _rows(episodes.order_by("pk"))


def resolved_rows(cluster: str) -> list[Row]:
    """Return the newest resolved episodes of a cluster."""
    episodes = Episode.objects.filter(cluster=cluster, state=EpisodeState.RESOLVED)
    return _rows(episodes.select_related("rule").order_by("-resolved_ms", "-pk")[:HISTORY_MAX])


def _rows(episodes: Any) -> list[Row]:
    silences = active_silences(now_ms())
    return [Row(each, silences.of(each)) for each in episodes]


def firing_rows(cluster: str) -> list[Row]:
    """Return the firing episodes without those that are silenced, worst first."""
    rows = [row for row in open_rows(cluster) if row.shown in ("firing", "acknowledged")]
    return sorted(rows, key=lambda row: (Severity(row.episode.severity).rank, row.name))


def rows_of_object(cluster: str, kind: str, name: str) -> Sequence[Row]:
    """Return the firing episodes of one object, for its page."""
    episodes = Episode.objects.filter(
        cluster=cluster, kind=kind, name=name, state=EpisodeState.FIRING
    )
    return _rows(episodes.select_related("rule").order_by("pk"))


def receivers_of(episode: Episode) -> list[str]:
    """Return the names of the receivers that accepted the firing notice of an episode."""
    sent = Delivery.objects.filter(
        notified__episode=episode, notified__event=Event.FIRING, state=DeliveryState.SENT
    )
    return list(sent.order_by("pk").values_list("receiver_name", flat=True))


def receivers_by_episode(rows: Sequence[Row]) -> dict[int, list[str]]:
    """Return `receivers_of` for the fired episodes of a list, with one query."""
    names: dict[int, list[str]] = {
        row.episode.pk: [] for row in rows if row.episode.fired_ms is not None
    }
    sent = Delivery.objects.filter(
        notified__episode__in=list(names), notified__event=Event.FIRING, state=DeliveryState.SENT
    )
    pairs = sent.order_by("pk").values_list("notified__episode", "receiver_name")
    for episode, name in pairs:
        names[episode].append(name)
    return names


def episode_numbered(cluster: str, number: int) -> Episode:
    episodes = Episode.objects.filter(cluster=cluster, pk=number).select_related("rule")
    found = episodes.first()
    if found is None:
        raise NotFound(_("There is no such alarm."))
    return found


def row_of(episode: Episode) -> Row:
    return _rows([episode])[0]


def acknowledge(episode: Episode, user: Any, note: str) -> None:
    """Store who works on an alarm. Raises NotAllowedNow for an alarm that does not fire."""
    changed = Episode.objects.filter(pk=episode.pk, state=EpisodeState.FIRING).update(
        acknowledged_ms=now_ms(), acknowledged_by=str(user), acknowledged_note=note
    )
    if not changed:
        raise NotAllowedNow(_("Only a firing alarm can be acknowledged."))
    announce(episode.cluster, "alarms")

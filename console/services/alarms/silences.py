"""Silences: which alarms send no notices for a time."""

from collections.abc import Iterable
from typing import Any, Final

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy

from console.gateway import NotAllowedNow, NotFound, now_ms
from console.services.alarms.feed import announce
from console.services.alarms.models import Episode, Silence
from console.services.alarms.observing import matches

#: Maximum number of silences that have not ended.
SILENCES_MAX: Final = 500
#: Maximum duration of a silence, ms.
SILENCE_MS_MAX: Final = 90 * 24 * 3_600_000


def active_silences(now_ms: int) -> list[Silence]:
    return list(
        Silence.objects.filter(begin_ms__lte=now_ms, until_ms__gt=now_ms).order_by("pk")[
            :SILENCES_MAX
        ]
    )


def silence_of(episode: Episode, silences: Iterable[Silence]) -> Silence | None:
    """Return the first silence that matches an episode."""
    return next((each for each in silences if is_silenced_by(episode, each)), None)


def is_silenced_by(episode: Episode, silence: Silence) -> bool:
    return (
        silence.cluster in ("", episode.cluster)
        and silence.rule_id in (None, episode.rule_id)
        and silence.kind in ("", episode.kind)
        and matches(silence.pattern, episode.name)
    )


def create(values: dict[str, Any], user: Any) -> Silence:
    """Create a silence that begins now. Raises NotAllowedNow beyond SILENCES_MAX."""
    at_ms = now_ms()
    if Silence.objects.filter(until_ms__gt=at_ms).count() >= SILENCES_MAX:
        text = gettext_lazy("At most {most} silences are possible.")
        raise NotAllowedNow(format_lazy(text, most=SILENCES_MAX))
    silence = Silence.objects.create(
        cluster=values["cluster"],
        rule=values["rule"],
        kind=values["kind"],
        pattern=values["pattern"],
        reason=values["reason"],
        begin_ms=at_ms,
        until_ms=at_ms + values["duration_s"] * 1_000,
        created_by=str(user),
    )
    announce(silence.cluster, "silences")
    return silence


def silence_numbered(cluster: str, number: int) -> Silence:
    found = Silence.objects.filter(cluster__in=["", cluster], pk=number).first()
    if found is None:
        raise NotFound(gettext_lazy("There is no such silence for this cluster."))
    return found


def silences_of(cluster: str) -> list[Silence]:
    """Return the silences of a cluster that have not ended, then the latest ended ones."""
    rows = Silence.objects.filter(cluster__in=["", cluster]).select_related("rule")
    return list(rows.order_by("-until_ms", "-pk")[:SILENCES_MAX])


def end(silence: Silence) -> None:
    """End a silence now; an ended silence stays in the list."""
    at_ms = now_ms()
    Silence.objects.filter(pk=silence.pk, until_ms__gt=at_ms).update(until_ms=at_ms)
    announce(silence.cluster, "silences")


def state_of(silence: Silence) -> dict[str, Any]:
    """Return a silence for the audit log."""
    names = ("cluster", "rule_id", "kind", "pattern", "reason", "begin_ms", "until_ms")
    return {name: getattr(silence, name) for name in names}

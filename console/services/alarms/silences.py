"""Silences: which alarms send no notices for a time."""

import fnmatch
import re
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, Final

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy

from console.gateway import NotAllowedNow, NotFound, now_ms
from console.services.alarms.feed import announce
from console.services.alarms.models import Episode, Silence

#: Maximum number of silences that have not ended.
SILENCES_MAX: Final = 500
#: Maximum duration of a silence, ms.
SILENCE_MS_MAX: Final = 90 * 24 * 3_600_000

#: Cluster, rule and kind of the silenced alarms; empty or None: all of them.
_Scope = tuple[str, int | None, str]


class ActiveSilences:
    """The silences in force, for many episodes: each pattern is compiled once.

    Hundreds of silences are tried on thousands of episodes, more than the cache of `fnmatch` holds.
    """

    def __init__(self, silences: Iterable[Silence]) -> None:
        """Silences that come first win."""
        self._silences = list(silences)
        places: dict[_Scope, list[int]] = {}
        for place, each in enumerate(self._silences):
            places.setdefault((each.cluster, each.rule_id, each.kind), []).append(place)
        self._by_scope = {scope: (self._any_of(found), found) for scope, found in places.items()}

    def _any_of(self, places: Sequence[int]) -> re.Pattern[str]:
        """An expression whose group N matches the names of the Nth silence."""
        patterns = (self._silences[place].pattern or "*" for place in places)
        return re.compile("|".join(f"({fnmatch.translate(each)})" for each in patterns))

    def of(self, episode: Episode) -> Silence | None:
        """Return the first silence that matches an episode."""
        scopes = product(("", episode.cluster), {None, episode.rule_id}, {"", episode.kind})
        found = [
            places[match.lastindex - 1]
            for names, places in (self._by_scope[each] for each in scopes if each in self._by_scope)
            if (match := names.match(episode.name)) is not None and match.lastindex
        ]
        return self._silences[min(found)] if found else None


def active_silences(now_ms: int) -> ActiveSilences:
    return ActiveSilences(
        Silence.objects.filter(begin_ms__lte=now_ms, until_ms__gt=now_ms).order_by("pk")[
            :SILENCES_MAX
        ]
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

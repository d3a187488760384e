"""Effect of a rule's deletion: topics whose bodies lose their decoder."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from console.gateway.messages.schemas.decoder import Decoder
from console.gateway.patterns import fits

#: Maximum number of topics in one sentence.
TOPICS_SHOWN_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class Effect:
    """Topics without a decoder afterwards, and by pattern the topics that another rule decodes."""

    undecoded: tuple[str, ...]
    inherited: dict[str, list[str]]


def effect_of(pattern: str, decoder: Decoder, topics: Iterable[str]) -> Effect:
    """Return what happens to the topics without the rule of `pattern`. The most specific of the
    rules decides, and then the next one."""
    undecoded: list[str] = []
    inherited: dict[str, list[str]] = {}
    for topic in topics:
        fitting = [rule.pattern for rule in decoder.rules if fits(rule.pattern, topic)][:2]
        if fitting == [pattern]:
            undecoded.append(topic)
        elif fitting[:1] == [pattern]:
            inherited.setdefault(fitting[1], []).append(topic)
    return Effect(tuple(undecoded), inherited)


def consequences(pattern: str, decoder: Decoder, topics: Iterable[str] | None) -> tuple[str, ...]:
    """Return the effect as sentences; None: the topics are unknown."""
    if topics is None:
        return (_("No broker answers: the topics with this rule are unknown."),)
    effect = effect_of(pattern, decoder, topics)
    lines = [
        _("Decoded by the rule “%(rule)s” afterwards: %(topics)s")
        % {"rule": heir, "topics": _named(found)}
        for heir, found in effect.inherited.items()
    ]
    if effect.undecoded:
        text = _("Bodies are no longer decoded in: %(topics)s")
        lines.insert(0, text % {"topics": _named(effect.undecoded)})
    return tuple(lines) or (_("None of the topics that you may read has this rule."),)


def _named(topics: Sequence[str]) -> str:
    shown = ", ".join(topics[:TOPICS_SHOWN_MAX])
    more = len(topics) - TOPICS_SHOWN_MAX
    if more <= 0:
        return shown
    return ngettext(
        "%(shown)s and %(count)d more topic", "%(shown)s and %(count)d more topics", more
    ) % {"shown": shown, "count": more}

"""A topic's permission (2 write, 4 read, 6 both) in words."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from core_broker.remoting.bodies import PERM_INHERIT, PERM_READ, PERM_WRITE


@dataclass(frozen=True, slots=True)
class PermWords:
    """A topic's permission for people: what is allowed, and how it should be coloured."""

    number: int
    words: str
    tone: str
    meaning: str


def perm_words(perm: int | None) -> PermWords | None:
    """2 is write only, 4 is read only, 6 both; 1 lets new topics inherit it."""
    if perm is None:
        return None
    words, tone, meaning = _PERM[perm & (PERM_READ | PERM_WRITE)]
    text = str(words)
    if perm & PERM_INHERIT:
        text = _("%(perm)s, inheritable") % {"perm": text}
    return PermWords(perm, text, tone, str(meaning))


_PERM: dict[int, tuple[Any, str, Any]] = {
    0: (
        gettext_lazy("no access"),
        "red",
        gettext_lazy("Nobody can send to the topic or consume from it."),
    ),
    PERM_WRITE: (
        gettext_lazy("write only"),
        "orange",
        gettext_lazy("Producers can send; consumers get nothing until reading is allowed."),
    ),
    PERM_READ: (
        gettext_lazy("read only"),
        "azure",
        gettext_lazy("Consumers can read what is there; producers are refused."),
    ),
    PERM_READ | PERM_WRITE: (
        gettext_lazy("read + write"),
        "green",
        gettext_lazy("Producers can send and consumers can read."),
    ),
}

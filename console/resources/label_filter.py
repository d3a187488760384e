"""Filter of lists by labels: the words `label:key=value` and `label:key` of a search.

    orders label:team=payments label:note="two words" label:link

A row passes when its name contains the other words and its object has every label. A value with a
blank stands in double quotes, and a double quote in quotes is doubled. `label:` alone matches each
object with labels. Keys are compared without regard to case, values exactly; a key or value that no
label can have matches nothing. The database compares, so a list reads no labels of other rows.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from django.db.models import TextField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError

from console.frame.tables import SEARCH_CHARS_MAX, Named, TableQuery
from console.resources.labels import LABELS_MAX, is_key, is_value, key_rule, value_rule
from console.resources.models import Kind, LabelSet

#: Maximum number of conditions that one object can meet: key, and key with value, of each label.
TERMS_MAX: Final = 2 * LABELS_MAX
PREFIX: Final = "label:"
_CONDITION: Final = r'(?P<key>[^\s=]*)(?P<equals>=(?:"(?P<quoted>(?:[^"]|"")*)"?|(?P<plain>\S*)))?'
_WORD: Final = re.compile(rf"{PREFIX}{_CONDITION}|\S+", re.IGNORECASE)
_CONDITIONS: Final = re.compile(_CONDITION)

#: Parameter of REST lists, beside the words of `q`.
LABEL: Final = OpenApiParameter(
    "label",
    OpenApiTypes.STR,
    description=(
        "Labels that the object must have, with blanks between them, at most "
        f"{TERMS_MAX}: `key=value`, or `key` for any value. A value with a blank stands in double "
        'quotes, and a double quote in quotes is doubled: `team=payments note="two words"`. The '
        "words `label:key=value` and `label:key` of `q` do the same."
    ),
)

N = TypeVar("N", bound=Named)


@dataclass(frozen=True, slots=True)
class Term:
    """A condition on labels; `value` None: any value, with the key "": any label."""

    key: str
    value: str | None

    @property
    def is_possible(self) -> bool:
        """Whether some label can meet the condition."""
        if self.value is None:
            return not self.key or is_key(self.key)
        return is_key(self.key) and is_value(self.value)


def word(key: str, value: str) -> str:
    """Return the word of a search that finds a label."""
    if " " in value or value.startswith('"'):
        value = '"{}"'.format(value.replace('"', '""'))
    return f"{PREFIX}{key}={value}"


class Search:
    """The search of a list, to which chips add labels."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._terms = frozenset(split(text)[1])

    def added(self, key: str, value: str) -> str:
        """Return the search with the word of a label; the word alone where both are too long."""
        if Term(key, value) in self._terms:
            return self.text
        wanted = word(key, value)
        both = f"{self.text} {wanted}".strip()
        return both if len(both) <= SEARCH_CHARS_MAX else wanted


def split(search: str) -> tuple[str, list[Term]]:
    """Return the words of a search that are no labels, and the conditions on labels."""
    words, terms = [], []
    for found in _WORD.finditer(search):
        if found["key"] is None:
            words.append(found[0])
            continue
        terms.append(_term(found))
    return " ".join(words), list(dict.fromkeys(terms))


def _term(found: re.Match[str]) -> Term:
    value = None
    if found["equals"] is not None:
        quoted = found["quoted"]
        value = found["plain"] if quoted is None else quoted.replace('""', '"')
    return Term(found["key"].lower(), value)


def read(text: str) -> list[Term]:
    """Return the conditions of the parameter `label`; 400 for one that no label can meet."""
    terms = list(dict.fromkeys(_term(each) for each in _CONDITIONS.finditer(text) if each[0]))
    if len(terms) > TERMS_MAX:
        reason = _("At most %(most)d labels are possible.") % {"most": TERMS_MAX}
        raise ValidationError({"label": [reason]})
    wrong = [
        value_rule(term.key) if is_key(term.key) else key_rule(term.key)
        for term in terms
        if not (term.key and term.is_possible)
    ]
    if wrong:
        raise ValidationError({"label": wrong})
    return terms


def matching(
    query: TableQuery[Any], cluster: str, kind: Kind, rows: Iterable[N], more: Sequence[Term] = ()
) -> list[N]:
    """Return the rows that pass the search of a list, and the conditions `more`."""
    words, terms = split(query.search)
    found = replace(query, search=words).matching(rows)
    if not terms and not more:
        return found
    names = _names(cluster, kind, list(dict.fromkeys([*terms, *more])))
    return [row for row in found if row.name in names]


def _names(cluster: str, kind: Kind, terms: Sequence[Term]) -> set[str]:
    """Return the names of the objects that meet every condition, with one database query."""
    if len(terms) > TERMS_MAX or not all(term.is_possible for term in terms):
        return set()
    rows = LabelSet.objects.filter(cluster=cluster, kind=kind)
    for number, term in enumerate(terms):
        if term.value is not None:
            # No lookup `labels__key`: Django would take the underscores of a key for lookups. The
            # cast makes the value a text: SQLite would decode JSON of the wanted value, too.
            held = {f"label_{number}": Cast(KeyTextTransform(term.key, "labels"), TextField())}
            rows = rows.alias(**held).filter(**{f"label_{number}": term.value})
        elif term.key:
            rows = rows.filter(labels__has_key=term.key)
    return set(rows.values_list("name", flat=True))

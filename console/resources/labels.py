"""Labels of topics and groups: keys with values, such as owner, team, tier or a link.

The console keeps the labels of an object in one row of its database. Labels go with a deletion by
this console (`deletion.py`); `left_labels.py` deletes those of objects that another tool deleted.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import TextField
from django.db.models.functions import Cast
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.frame.characters import is_visible
from console.frame.versions import locked, version_of
from console.gateway import NotAllowedNow, now_ms
from console.gateway.changes import FieldChange, check_unchanged
from console.resources.models import Kind, LabelSet

KEY_PATTERN: Final = r"[a-z][a-z0-9._-]{0,39}"
VALUE_CHARS_MAX: Final = 200
#: Maximum number of labels of one topic or group.
LABELS_MAX: Final = 16
#: Maximum number of topics and groups with labels, over all clusters.
LABELED_MAX: Final = 50_000
KEY_SHOWN_CHARS: Final = 60
_KEY: Final = re.compile(KEY_PATTERN)
GONE: Final = _("Somebody deleted the labels meanwhile.")

Labels = dict[str, str]


def checked(labels: Mapping[Any, Any]) -> Labels:
    """Return the labels in the order of their keys. Raises ValidationError with the reasons."""
    wrong: list[Any] = []
    if len(labels) > LABELS_MAX:
        raise ValidationError([_("At most %(most)d labels are possible.") % {"most": LABELS_MAX}])
    for key, value in labels.items():
        if not is_key(key):
            wrong.append(key_rule(key))
        elif not is_value(value):
            wrong.append(value_rule(key))
    if wrong:
        raise ValidationError(wrong)
    return {key: labels[key] for key in sorted(labels)}


def is_key(key: Any) -> bool:
    return isinstance(key, str) and _KEY.fullmatch(key) is not None


def is_value(value: Any) -> bool:
    if not isinstance(value, str) or not 0 < len(value) <= VALUE_CHARS_MAX:
        return False
    return is_visible(value) and value == value.strip()


def key_rule(key: Any) -> Any:
    """Return the rule that a wrong key breaks, as lazy text."""
    text = _(
        "{key}: a key begins with a letter and has at most 40 small letters, digits, dots, "
        "underscores and hyphens."
    )
    return format_lazy(text, key=_shown(key))


def value_rule(key: Any) -> Any:
    """Return the rule that the wrong value of a key breaks, as lazy text."""
    text = _(
        "{key}: a value is a text of 1 to {most} visible characters, without blanks at its ends."
    )
    return format_lazy(text, key=_shown(key), most=VALUE_CHARS_MAX)


def _shown(key: Any) -> str:
    return ascii(key)[:KEY_SHOWN_CHARS]


def labels_of(cluster: str, kind: Kind, name: str) -> Labels:
    """Return the labels of an object; empty without labels."""
    return labels_by_name(cluster, kind, [name]).get(name, {})


def labels_by_name(
    cluster: str, kind: Kind, names: Iterable[str] | None = None
) -> dict[str, Labels]:
    """Return the labels of the named objects, or of all, in one database query. Objects without
    labels are left out."""
    rows = LabelSet.objects.filter(cluster=cluster, kind=kind)
    if names is not None:
        # PostgreSQL has no texts with NUL
        rows = rows.filter(name__in=[each for each in names if "\x00" not in each])
    return {name: _ordered(found) for name, found in rows.values_list("name", "labels")}


def stored_labels(cluster: str, kind: Kind) -> Iterable[tuple[str, str]]:
    """Return the names of all objects with labels, and their labels as the JSON of the database.

    For readers of thousands of objects that keep what they make of a JSON; `labels_of_json` reads
    it.
    """
    rows = LabelSet.objects.filter(cluster=cluster, kind=kind)
    return rows.values_list("name", Cast("labels", TextField()))


def labels_of_json(text: str) -> Labels:
    """Return the labels of a JSON of `stored_labels`."""
    return _ordered(json.loads(text))


def _ordered(labels: Mapping[str, str]) -> Labels:
    return {key: labels[key] for key in sorted(labels)}


def with_labels(
    cluster: str, kind: Kind, items: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return list items, which have a `name`, with the member `labels`; one database query."""
    found = labels_by_name(cluster, kind, [each["name"] for each in items])
    return [{**each, "labels": found.get(each["name"], {})} for each in items]


def version(labels: Labels) -> str:
    """Return the version of the labels of an object as ETag."""
    return version_of(labels)


def differences(before: Labels, after: Labels) -> list[FieldChange]:
    """Return the changed labels by key; the place is empty, for no broker has labels."""
    return [
        FieldChange("", key, before.get(key), after.get(key))
        for key in sorted({*before, *after})
        if before.get(key) != after.get(key)
    ]


@transaction.atomic
def change(
    cluster: str,
    kind: Kind,
    name: str,
    by: str,
    to: Callable[[Labels], Mapping[Any, Any]],
    expected: str | None = None,
) -> Labels:
    """Store the labels that `to` makes of the present ones, and return the stored labels.

    Raises ValidationError, NotAllowedNow at the bound of objects with labels, and
    PreconditionFailed when the labels have another version than `expected`.
    """
    key = {"cluster": cluster, "kind": kind, "name": name}
    if not LabelSet.objects.filter(**key).exists() and LabelSet.objects.count() >= LABELED_MAX:
        text = _("At most {most} topics and groups can have labels; delete some labels first.")
        raise NotAllowedNow(format_lazy(text, most=LABELED_MAX))
    made, _is_new = LabelSet.objects.get_or_create(
        **key, defaults={"labels": {}, "changed_ms": now_ms(), "changed_by": by}
    )
    row = locked(made, GONE)
    check_unchanged(expected, version(_ordered(row.labels)))
    row.labels = checked(to(dict(row.labels)))
    if not row.labels:
        row.delete()
        return {}
    row.changed_ms, row.changed_by = now_ms(), by
    row.save()
    return dict(row.labels)


def forget(cluster: str, kind: Kind, name: str) -> None:
    """Delete the labels of a deleted object."""
    LabelSet.objects.filter(cluster=cluster, kind=kind, name=name).delete()

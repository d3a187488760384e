"""Filters a list by labels in a program with a database of its own.

    GANTRY_HOME=… [DATABASE_URL=…] python -m tests.api.label_filters

Prints one JSON object: the matching names by search, and the labels that the JSON of the database
has.
"""

import json
from dataclasses import dataclass
from typing import Final

import django
from django.core.management import call_command

#: Labels by name; the names `a` to `c` are looked for, the rest are look-alikes.
STORED: Final = {
    "a": {"team": "payments", "a.b": "1", "note": "two words"},
    "b": {"team": "Payments", "tier_x": "100%"},
    "c": {"team": "pay", "link": "https://x/?q=a=b", "quoted": 'say "hi" now', "tierax": "100x"},
    "nested": {"a": '{"b": "1"}'},
}
#: Names that pass each search.
EXPECTED: Final = {
    "": ["a", "b", "bare", "c", "nested"],
    "label:": ["a", "b", "c", "nested"],
    "label:team": ["a", "b", "c"],
    "LABEL:Team": ["a", "b", "c"],
    "label:team=payments": ["a"],
    "label:team=Payments": ["b"],
    "label:team=pay%": [],
    "label:team=pay_ents": [],
    "label:team=%": [],
    "label:team=": [],
    "label:=payments": [],
    "label:tea": [],
    "label:a.b": ["a"],
    "label:a.b=1": ["a"],
    "label:a": ["nested"],
    "label:tier_x": ["b"],
    "label:tier_x=100%": ["b"],
    'label:note="two words"': ["a"],
    'label:note="two words': ["a"],
    "label:note=two words": [],
    'label:quoted="say ""hi"" now"': ["c"],
    "label:link=https://x/?q=a=b": ["c"],
    "label:team label:a.b=1": ["a"],
    "label:team=pay label:team=payments": [],
    "a label:team": ["a"],
    "label:team a": ["a"],
    "label:team=payments b": [],
    "bare label:team": [],
    "xlabel:team": [],
    'label:"team"=payments': [],
    "label:team'--": [],
    "label:team=x' OR '1'='1": [],
    "label:$": [],
    "label:team=p\x00ayments": [],
    "label:team=\ud800": [],
    "label:te\x00am": [],
    "label:\u0442eam": [],
    "label:team=<script>alert(1)</script>": [],
    " ".join(f"label:k{number}" for number in range(40)): [],
}


@dataclass(frozen=True, slots=True)
class Row:
    name: str


def main() -> None:
    django.setup()
    call_command("migrate", verbosity=0)
    print(json.dumps([found(), read_as_json()]))


def read_as_json() -> dict[str, dict[str, str]]:
    """The labels by name, of the JSON of the database."""
    from console.resources import labels
    from console.resources.models import Kind

    stored = labels.stored_labels("local", Kind.TOPIC)
    return {name: labels.labels_of_json(text) for name, text in stored}


def found() -> dict[str, list[str]]:
    """The matching names by search."""
    from console.frame.tables import Column, Columns, TableQuery
    from console.resources import label_filter, labels
    from console.resources.models import Kind

    def store(cluster: str, kind: Kind, name: str, given: dict[str, str]) -> None:
        labels.change(cluster, kind, name, "staff", lambda _held: given)

    for name, given in STORED.items():
        store("local", Kind.TOPIC, name, given)
    for cluster, kind in (("local", Kind.GROUP), ("other", Kind.TOPIC)):
        store(cluster, kind, "bare", {"team": "payments"})
    rows = [Row(name) for name in ("bare", *STORED)]
    columns: Columns[Row] = Columns(Column("name", "Name", lambda row: row.name))
    return {
        search: sorted(
            row.name
            for row in label_filter.matching(
                TableQuery(columns, search, "name", 1), "local", Kind.TOPIC, rows
            )
        )
        for search in EXPECTED
    }


if __name__ == "__main__":
    main()

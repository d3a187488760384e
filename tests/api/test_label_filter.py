"""Lists filtered by labels: words of the search, the parameter of the REST lists, exports."""

import csv
import io
import json
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console.frame.tables import SEARCH_CHARS_MAX
from console.resources import label_filter, labels
from console.resources.label_filter import Search, Term
from console.resources.models import Kind
from tests.api import label_filters
from tests.api.conftest import Api
from tests.api.test_labels import made, put
from tests.api.test_pages import Shape, html
from tests.api.test_roles import member
from tests.api.test_table_exports import exported, lines, queue
from tests.api.traffic import Traffic
from tests.support.django_programs import printed_json
from tests.support.postgres import PostgreSql, why_not

HOME = "/clusters/local"
NASTY = '<script>alert("x")</script>'
PAID = {"team": "payments", "note": "two words"}
_ = queue


@pytest.mark.django_db
def test_a_search_finds_labels_and_words_on_sqlite() -> None:
    assert label_filters.found() == label_filters.EXPECTED
    assert label_filters.read_as_json() == label_filters.STORED


def test_a_search_finds_labels_and_words_on_postgresql(tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    with PostgreSql() as server:
        found, read = printed_json("tests.api.label_filters", server.url, tmp_path)
    assert found == label_filters.EXPECTED
    assert read == label_filters.STORED


@pytest.mark.parametrize(
    "value", ["plain", "two words", '"', '" "', 'a "b" c', '""', "=", "label:x=y", "a'b", NASTY]
)
def test_the_word_of_a_chip_finds_its_label(value: str) -> None:
    assert label_filter.split(label_filter.word("k", value)) == ("", [Term("k", value)])
    both = Search("orders").added("k", value)
    assert label_filter.split(both) == ("orders", [Term("k", value)])
    assert Search(both).added("k", value) == both


def test_the_longest_word_fits_a_search() -> None:
    word = Search("x" * 400).added("k" * 40, '" ' * 99 + '""')
    assert len(word) <= SEARCH_CHARS_MAX
    [term] = label_filter.split(word)[1]
    assert term.is_possible


@pytest.mark.parametrize("kind", ["topics", "groups"])
def test_lists_are_filtered(api: Api, page: Client, traffic: Traffic, kind: str) -> None:
    paid, other, bare = (made(api, traffic, kind, name).rpartition("/")[2] for name in "abc")
    put(api, f"/{kind}/{paid}", PAID)
    put(api, f"/{kind}/{other}", {"team": "Payments", "note": NASTY})
    found = {
        "?label=team=payments": [paid],
        "?label=team": [paid, other],
        '?label=team%20note="two%20words"': [paid],
        "?label=team=payments&q=b-": [],
        "?label=team&q=b-": [other],
        "?q=label:team%20b-": [other],
        "?q=label:team=payments": [paid],
        '?q=label:note="two%20words"': [paid],
        f"?label=note={NASTY}": [other],
        "?label=": sorted([bare, paid, other]),
    }
    for query, names in found.items():
        answer = api.get(f"/{kind}{query}")
        shown = [each["name"] for each in answer["items"]]
        assert [name for name in shown if name in {paid, other, bare}] == names, query
        assert answer["total"] == len(answer["items"])
    text = html(page, f"{HOME}/{kind}/?q=label:team=payments")
    assert paid in text
    assert other not in text
    assert bare not in text
    text = html(page, f"{HOME}/{kind}/")
    assert NASTY not in text
    shape = Shape(text)
    assert not shape.wrong
    chips = [link for link in shape.links if "label%3Anote" in link]
    for link in map(unescape, chips):
        text = html(page, f"{HOME}/{kind}/{link}")
        assert (paid in text) == ("two" in link)
        assert (other in text) == ("script" in link)
    assert len(chips) == 2
    hidden = html(page, f"{HOME}/{kind}/?columns=name")
    assert "note=two words" not in hidden


@pytest.mark.parametrize("path", ["/topics", "/groups"])
@pytest.mark.parametrize(
    "query",
    [
        'label=team="',
        "label=team=x%20=",
        "label=team=",
        "label=%00",
        "label=team=%00",
        "label=team=%F0%9F%98%80%EF%B8%8F",
        "label==x",
        'label="team"=x',
        "label=team=" + "x" * 201,
        "label=" + "k" * 65_000,
        "label=" + "%20".join(f"k{number}" for number in range(33)),
    ],
)
def test_a_label_that_cannot_be_is_400(api: Api, path: str, query: str) -> None:
    answer = api("get", f"{path}?{query}")
    assert answer.status_code == 400, answer.content
    assert "label" in answer.json()["errors"]
    assert len(answer.content) < 2_000


@pytest.mark.parametrize("kind", ["topics", "groups"])
def test_a_search_with_hostile_labels_finds_nothing(page: Client, kind: str) -> None:
    for text in ("label:" + "k" * 65_000, "label:k=" + "%" * 600, 'label:k="' * 50, "label:%00"):
        answer = page.get(f"{HOME}/{kind}/", {"q": text})
        assert answer.status_code == 200
        assert not Shape(answer.content.decode()).wrong


def test_a_list_reads_the_labels_of_its_page_with_one_query(
    page: Client, api: Api, traffic: Traffic
) -> None:
    for _number in range(3):
        put(api, made(api, traffic, "topics"), PAID)
    for query, queries in (("", 1), ("?q=label:team=payments+label:note", 2)):
        with CaptureQueriesContext(connection) as seen:
            text = html(page, f"{HOME}/topics/{query}")
        assert text.count("team=payments</a>") == 3
        assert sum("labelset" in each["sql"] for each in seen.captured_queries) == queries


def test_labels_of_names_that_a_user_may_not_read_are_not_shown(api: Api, traffic: Traffic) -> None:
    mine, other = made(api, traffic, "topics", "pay"), made(api, traffic, "topics", "closed")
    for path in (mine, other):
        put(api, path, PAID)
    blind = Api(member("quinn", "topics:read:pay-*"))
    assert [f"/topics/{one['name']}" for one in blind.get("/topics?label=team")["items"]] == [mine]
    assert other.rpartition("/")[2] not in str(blind.get("/topics?q=label:team=payments"))


@pytest.mark.parametrize("kind", ["topics", "groups"])
def test_exports_have_the_labels(api: Api, traffic: Traffic, kind: str) -> None:
    formula = {"team": "=1+1", "note": NASTY}
    name, bare = (made(api, traffic, kind).rpartition("/")[2] for _ in range(2))
    put(api, f"/{kind}/{name}", formula)
    _job, data = exported(api, table=kind, q="label:team")
    assert [(row["name"], row["labels"]) for row in lines(data)] == [(name, formula)]
    _job, data = exported(api, table=kind, q=bare)
    assert [row["labels"] for row in lines(data)] == [{}]
    _job, data = exported(api, table=kind, q="label:team==1+1", format="csv")
    [row] = csv.DictReader(io.StringIO(data.decode("utf-8-sig")))
    held: Any = json.loads(row["labels"])
    assert held == formula
    labels.forget("local", Kind(kind.removesuffix("s")), name)
    _job, data = exported(api, table=kind, q="label:team")
    assert lines(data) == []

"""The form of labels, and the chips on the pages of topics and groups."""

import re
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from console.audit.models import AuditRow
from console.resources import labels
from console.resources.models import LabelSet
from tests.api.conftest import Api, browser
from tests.api.test_labels import OWNED, made, put
from tests.api.test_pages import Shape, html
from tests.api.test_roles import member
from tests.api.test_stale_forms import CHANGED, version
from tests.api.traffic import Traffic

KINDS = pytest.mark.parametrize("kind", ["topics", "groups"])


def form(wanted: dict[str, str], **more: str) -> dict[str, Any]:
    return {"key": list(wanted), "value": list(wanted.values()), **more}


def fields(text: str) -> list[tuple[str, str]]:
    """Key and value of each row of the form."""
    found = re.findall(r'<input class="form-control" name="(key|value)" value="([^"]*)"', text)
    values = [unescape(value) for _name, value in found]
    return list(zip(values[::2], values[1::2], strict=True))


def url_of(path: str) -> str:
    return f"/clusters/local{path}/labels/"


@KINDS
def test_labels_are_added_changed_and_removed(
    api: Api, page: Client, traffic: Traffic, kind: str
) -> None:
    path = made(api, traffic, kind)
    url, detail, name = url_of(path), f"/clusters/local{path}/", path.rpartition("/")[2]
    assert "Add labels" in html(page, detail)
    first = html(page, url)
    assert not Shape(first).wrong
    assert fields(first) == [("", "")] * 3
    wanted = {"tier": "gold", "a.b_c-d": " \"x\" = <b>'y'</b> ", "link": "https://example.org/a"}
    stored = {key: value.strip() for key, value in wanted.items()}
    answer = page.post(url, form(wanted, version=version(first)))
    assert (answer.status_code, answer.headers["Location"]) == (302, detail)
    assert api.get(f"{path}/labels")["labels"] == stored
    text = html(page, detail)
    shape = Shape(text)
    assert not shape.wrong
    assert f"The labels of “{name}” are saved." in text
    assert "<b>'y" not in text
    assert "&lt;b&gt;&#x27;y" in text
    assert "https://example.org/a" in shape.links
    [chip] = [link for link in shape.links if "a.b_c-d" in link]
    assert name in html(page, chip)
    second = html(page, url)
    assert fields(second) == [*sorted(stored.items()), ("", "")]
    changed = {"tier": "tin", "": "", "owner": "ann"}
    assert page.post(url, form(changed, version=version(second))).status_code == 302
    assert api.get(f"{path}/labels")["labels"] == {"owner": "ann", "tier": "tin"}
    assert page.post(url, form({})).status_code == 302
    assert not LabelSet.objects.exists()
    rows = AuditRow.objects.filter(target=name, action=f"{kind[:-1]}.label").order_by("pk")
    after = [row.after for row in rows]
    assert after == [stored, {"owner": "ann", "tier": "tin"}, {}]
    assert [row.before for row in rows][1:] == after[:2]


def test_a_form_without_a_change_writes_no_audit_entry(
    api: Api, page: Client, traffic: Traffic
) -> None:
    path = made(api, traffic, "topics")
    put(api, path, OWNED)
    answer = page.post(url_of(path), form(OWNED), follow=True)
    assert "No changes: the labels already have these values." in answer.content.decode()
    assert AuditRow.objects.filter(action="topic.label").count() == 1


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ([("Owner", "ann")], "&#x27;Owner&#x27;: a key begins with a letter"),
        ([("owner", "")], "&#x27;owner&#x27;: a value is a text of 1 to 200 visible characters"),
        ([("", "ann")], "&#x27;&#x27;: a key begins with a letter"),
        ([("\u043ewner", "ann")], "\\u043ewner&#x27;: a key begins"),
        ([('a"b', "x")], "a key begins with a letter"),
        ([("a'b", "x")], "a key begins with a letter"),
        ([("owner", "a\u200bb")], "visible characters"),
        ([("owner", "a\x00b")], "visible characters"),
        ([("owner", "x" * 65_000)], "visible characters"),
        ([("k" * 65_000, "x")], "a key begins with a letter"),
        ([("owner", "ann"), ("owner", "bob")], "owner is there twice; a key has one value."),
        ([(f"k{number}", "v") for number in range(17)], "At most 16 labels are possible."),
        ([(f"k{number}", "v") for number in range(400)], "At most 16 labels are possible."),
    ],
)
def test_a_wrong_label_is_refused_with_its_rule(
    api: Api, page: Client, traffic: Traffic, wrong: list[tuple[str, str]], rule: str
) -> None:
    path = made(api, traffic, "topics")
    put(api, path, OWNED)
    body = {"key": [key for key, _value in wrong], "value": [value for _key, value in wrong]}
    answer = page.post(url_of(path), body)
    text = answer.content.decode()
    assert answer.status_code == 422
    assert rule in text
    assert not Shape(text).wrong
    if len(wrong) < 3:
        assert fields(text)[: len(wrong)] == wrong, "the input is kept"
    assert api.get(path)["labels"] == OWNED


def test_rows_are_added_and_removed_without_a_change(
    api: Api, page: Client, traffic: Traffic
) -> None:
    path = made(api, traffic, "groups")
    put(api, path, OWNED)
    url = url_of(path)
    opened = version(html(page, url))
    put(api, path, {"owner": "bob"})
    body = form({"owner": "ann", "tier": "gold"}, version=opened)
    more = page.post(url, {**body, "add": ""}).content.decode()
    assert fields(more) == [("owner", "ann"), ("tier", "gold"), ("", "")]
    assert version(more) == opened, "a further row is no look at the other change"
    assert more.count("autofocus") == 1
    fewer = page.post(url, {**body, "remove": "0"}).content.decode()
    assert fields(fewer) == [("tier", "gold")]
    full = {f"k{number}": "v" for number in range(16)}
    assert len(fields(page.post(url, {**form(full), "add": ""}).content.decode())) == 16
    for number in ("99", "-1", "x", "\u0661", "9" * 5_000, ""):
        assert page.post(url, {**body, "remove": number}).status_code == 200
    assert page.post(url, {"remove": "0"}).status_code == 200
    assert api.get(path)["labels"] == {"owner": "bob"}


def test_a_form_that_is_older_than_the_labels_is_refused(
    api: Api, page: Client, traffic: Traffic
) -> None:
    path = made(api, traffic, "topics")
    url = url_of(path)
    opened = version(html(page, url))
    put(api, path, {"owner": "bob"})
    refused = page.post(url, form({"owner": "ann"}, version=opened))
    text = refused.content.decode()
    assert refused.status_code == 409
    assert CHANGED in text
    assert fields(text)[0] == ("owner", "ann")
    assert api.get(path)["labels"] == {"owner": "bob"}
    assert page.post(url, form({"owner": "ann"}, version=version(text))).status_code == 302
    assert api.get(path)["labels"] == {"owner": "ann"}


def test_the_form_needs_the_permission_of_the_rest_endpoint(
    api: Api, traffic: Traffic, operator: User, reader: User
) -> None:
    mine, other = made(api, traffic, "topics", "pay"), made(api, traffic, "topics", "closed")
    put(api, other, OWNED)
    limited = browser(member("pat", "topics:write:pay-*", "topics:read:*"))
    assert limited.post(url_of(mine), form(OWNED)).status_code == 302
    assert api.get(mine)["labels"] == OWNED
    for page in (limited, browser(reader)):
        assert page.get(url_of(other)).status_code == 403
        assert page.post(url_of(other), form({})).status_code == 403
        text = html(page, f"/clusters/local{other}/")
        assert "owner=ann" in text
        assert url_of(other) not in text
    assert browser(operator).post(url_of(other), form({})).status_code == 302
    assert api.get(other)["labels"] == {}


def test_a_read_only_cluster_refuses_the_form(api: Api, page: Client, traffic: Traffic) -> None:
    path = made(api, traffic, "topics")
    assert api("put", "/read-only", {"reason": "audit"}).status_code == 200
    assert page.post(url_of(path), form(OWNED)).status_code == 403
    assert "Add labels" not in html(page, f"/clusters/local{path}/")
    assert not LabelSet.objects.exists()


@KINDS
def test_an_object_that_does_not_exist_has_no_form(page: Client, kind: str) -> None:
    for name in ("absent", "n" * 300, "%F0%9F%98%80"):
        assert page.get(url_of(f"/{kind}/{name}")).status_code == 404
        assert page.post(url_of(f"/{kind}/{name}"), form(OWNED)).status_code == 404
    assert not LabelSet.objects.exists()


def test_the_bound_of_labeled_objects_is_told(
    api: Api, page: Client, traffic: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labels, "LABELED_MAX", 0)
    answer = page.post(url_of(made(api, traffic, "topics")), form(OWNED))
    assert answer.status_code == 409
    assert "At most 0 topics and groups can have labels" in answer.content.decode()


def test_the_form_speaks_chinese(api: Api, page: Client, traffic: Traffic) -> None:
    path = made(api, traffic, "topics")
    chinese = {"Accept-Language": "zh-hans"}
    text = html(page, url_of(path), **chinese)
    assert "再加一个标签" in text
    wrong = page.post(url_of(path), form({"Owner": "x"}), headers=chinese).content.decode()
    assert "键以字母开头" in wrong

"""Saved views of a user and of the team."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from console.services.search import saved
from console.services.search.models import SavedView
from tests.api.conftest import Api, browser
from tests.api.stored import NASTY, RAW, numbered, routed_topic, store
from tests.api.test_pages import html
from tests.api.traffic import Traffic
from tests.support.cluster import Cluster

PAGE = "/clusters/local/saved-views/"
VIEW = "/clusters/local/messages/?topic=orders&tags=red&last=1h"


def save(page: Client, address: str = VIEW, name: str = "red orders", **more: str) -> Any:
    return page.post(PAGE, {"name": name, "address": address, **more})


@pytest.mark.must_beat(35)
def test_the_address_of_a_view_shows_the_same_rows_to_another(
    page: Client, reader: User, traffic: Traffic
) -> None:
    topic = routed_topic(traffic, "shared")
    store(traffic, *numbered(topic, 12))
    address = f"/clusters/local/messages/?topic={topic}&tags=t&body=message 1&begin=2020-01-01"
    shown = html(page, address)
    assert shown.count("message 1") > 2
    rows = [line for line in shown.splitlines() if 'class="id"' in line]
    assert len(rows) == 3
    other = html(browser(reader), address)
    assert [line for line in other.splitlines() if 'class="id"' in line] == rows


@pytest.mark.must_beat(35)
def test_a_view_is_saved_for_me_or_my_team(page: Client, reader: User) -> None:
    assert save(page).status_code == 302
    assert save(page, name="for all", is_shared="on").status_code == 302
    own = html(page, PAGE)
    assert 'href="/clusters/local/messages/?topic=orders&amp;tags=red&amp;last=1h"' in own
    others = html(browser(reader), PAGE)
    assert "for all" in others
    assert "red orders" not in others
    assert save(browser(reader), name="mine").status_code == 302
    assert "mine" in html(browser(reader), PAGE)
    assert "mine" not in html(page, PAGE)


def test_a_page_offers_to_save_itself(page: Client) -> None:
    shown = html(page, "/clusters/local/topics/?q=ord&ordering=-name")
    assert "saved-views/?address=%2Fclusters%2Flocal%2Ftopics%2F%3Fq%3Dord%26ordering" in shown


def test_who_may_only_look_shares_nothing(reader: User, local: Cluster) -> None:
    viewer = browser(reader)
    save(viewer, name="x", is_shared="on")
    assert not SavedView.objects.get(name="x").is_shared
    answer = Api(reader)("post", "/saved-views", {"name": "y", "address": VIEW, "is_shared": True})
    assert answer.status_code == 409


def test_only_its_owner_or_an_administrator_removes_a_view(
    page: Client, reader: User, operator: User
) -> None:
    operators = browser(operator)
    save(operators, name="ours", is_shared="on")
    pk = SavedView.objects.get().pk
    assert Api(reader)("delete", f"/saved-views/{pk}").status_code == 404
    assert browser(reader).post(PAGE, {"remove": pk}).status_code == 404
    assert page.post(PAGE, {"remove": pk}).status_code == 302
    assert not SavedView.objects.exists()
    assert page.post(PAGE, {"remove": NASTY}).status_code == 404


def test_the_api_saves_lists_and_removes(api: Api) -> None:
    first = api("post", "/saved-views", {"name": "a", "address": VIEW})
    assert first.status_code == 201
    again = api("post", "/saved-views", {"name": "a", "address": "/clusters/local/topics/"})
    assert again.json()["id"] == first.json()["id"]
    assert [each["address"] for each in api.get("/saved-views")["items"]] == [
        "clusters/local/topics/"
    ]
    assert api("delete", f"/saved-views/{first.json()['id']}").status_code == 204
    assert api.get("/saved-views")["items"] == []


def test_saved_views_are_bounded(page: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "SAVED_VIEWS_MAX", 1)
    save(page)
    assert save(page, name="another").status_code == 409
    assert save(page).status_code == 302, "one of the same name is replaced"


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example/",
        "//evil.example/clusters/local/topics/",
        "/\\evil.example",
        "javascript:alert(1)",
        "/clusters/other/topics/",
        "/api/v1/clusters/local/topics",
        "/accounts/logout/",
        "/nosuch",
        "",
        "/clusters/local/topics/" + "x" * 3_000,
        NASTY,
    ],
)
def test_only_pages_of_the_cluster_are_saved(page: Client, api: Api, address: str) -> None:
    answer = save(page, address)
    assert answer.status_code == 422
    assert not any(raw in answer.content for raw in RAW)
    assert api("post", "/saved-views", {"name": "x", "address": address}).status_code == 400
    shown = page.get(PAGE, {"address": address})
    assert not any(raw in shown.content for raw in RAW)

"""Guards of changes: dry run, conflicts, protection, confirmation, bulk operations, undo."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from console.resources.bulk import NAMES_MAX
from console.resources.models import Change
from tests.api.conftest import Api
from tests.api.traffic import Traffic, poll

HOME = "/clusters/local"


def there(api: Api, path: str) -> Any:
    return poll(lambda: (one := api("get", path)).status_code == 200 and one)


@pytest.mark.must_beat(23)
def test_a_dry_run_tells_the_difference_and_a_stale_edit_is_refused(
    api: Api, traffic: Traffic
) -> None:
    topic = traffic.topic("edited", write_queue_nums=4, read_queue_nums=4)
    etag = there(api, f"/topics/{topic}").headers["ETag"]
    answer = api("patch", f"/topics/{topic}?dry_run=true", {"perm": 4}, **{"If-Match": etag})
    assert answer.json()["changes"] == [
        {"broker": "broker-a", "field": "perm", "before": 6, "after": 4}
    ]
    assert api.get(f"/topics/{topic}")["perm"] == 6, "nothing is changed"
    assert api("patch", f"/topics/{topic}", {"perm": 4}, **{"If-Match": etag}).status_code == 200
    for query in ("", "?dry_run=true"):
        answer = api("patch", f"/topics/{topic}{query}", {"perm": 6}, **{"If-Match": etag})
        assert answer.status_code == 412
    assert api("patch", f"/topics/{topic}?dry_run=perhaps", {"perm": 6}).status_code == 400
    group = traffic.group("edited")
    there(api, f"/groups/{group}")
    answer = api("patch", f"/groups/{group}?dry_run=1", {"retry_max_times": 3})
    assert [(one["field"], one["after"]) for one in answer.json()["changes"]] == [
        ("retry_max_times", 3)
    ]


@pytest.mark.must_beat(24)
def test_what_is_protected_and_what_is_in_use_is_not_deleted_by_accident(
    api: Api, traffic: Traffic
) -> None:
    topic, group = traffic.topic("kept"), traffic.group("keeper")
    traffic.send(topic, 5)
    there(api, f"/topics/{topic}")
    assert api("put", f"/topics/{topic}/protection").json() == {"name": topic, "protected": True}
    answer = api("delete", f"/topics/{topic}")
    assert (answer.status_code, answer.json()["type"]) == (409, "urn:gantry:problem:protected")
    assert api("delete", f"/topics/{topic}/protection").json()["protected"] is False
    with traffic.consumer(group, topic):
        poll(lambda: api.get(f"/topics/{topic}/impact")["online_groups"].get(group) == 1)
        impact = api.get(f"/topics/{topic}/impact")
        assert impact["numbers"]["stored"] == 5
        answer = api("delete", f"/topics/{topic}?confirm=another")
        assert (answer.status_code, answer.json()["type"]) == (409, "urn:gantry:problem:needs-name")
        answer = api("delete", f"/groups/{group}")
        assert (answer.status_code, answer.json()["type"]) == (409, "urn:gantry:problem:needs-name")
        assert api("delete", f"/topics/{topic}?confirm={topic}").status_code == 200


@pytest.mark.must_beat(26)
def test_five_are_deleted_of_which_one_is_protected(api: Api, traffic: Traffic) -> None:
    names = [traffic.topic("many") for _ in range(5)]
    for name in names:
        there(api, f"/topics/{name}")
    api("put", f"/topics/{names[2]}/protection")
    tried = api("post", "/topics:delete", {"names": names, "dry_run": True}).json()["results"]
    assert [one["result"] for one in tried] == ["would", "would", "failed", "would", "would"]
    answer = api("post", "/topics:delete", {"names": [*names, names[0]]})
    assert answer.status_code == 207
    body = answer.json()
    assert (body["done"], body["failed"]) == (4, 1)
    failed = [one for one in body["results"] if one["result"] == "failed"]
    assert [(one["name"], one["problem"]) for one in failed] == [(names[2], "protected")]
    assert api("get", f"/topics/{names[2]}").status_code == 200
    assert api("get", f"/topics/{names[0]}").status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"names": []},
        {"names": "x"},
        {"names": [1, None]},
        {"names": ["x" * 999]},
        {"names": ["x"] * (NAMES_MAX + 1)},
        {"names": ["x"], "force": True},
    ],
)
def test_bulk_bodies_that_make_no_sense(api: Api, body: Any) -> None:
    for path in ("/topics:delete", "/groups:delete"):
        assert api("post", path, body).status_code == 400


def test_groups_are_deleted_in_bulk_with_unknown_ones_told(api: Api, traffic: Traffic) -> None:
    group = traffic.group("gone")
    there(api, f"/groups/{group}")
    body = api("post", "/groups:delete", {"names": [group, "never-was"]}).json()
    assert [(one["result"], one["problem"]) for one in body["results"]] == [
        ("done", None),
        ("failed", "not-found"),
    ]


def test_a_page_deletes_the_chosen_when_their_number_is_typed(
    page: Client, api: Api, traffic: Traffic
) -> None:
    names = [traffic.topic("chosen") for _ in range(2)]
    for name in names:
        there(api, f"/topics/{name}")
    url = f"{HOME}/delete-topics/"
    assert page.post(url, {"names": []}).status_code == 302
    shown = page.post(url, {"names": names})
    assert all(name in shown.content.decode() for name in names)
    wrong = page.post(url, {"names": names, "delete": "1", "typed_count": "3"})
    assert wrong.status_code == 422
    assert api("get", f"/topics/{names[0]}").status_code == 200
    assert page.post(url, {"names": names, "delete": "1", "typed_count": "2"}).status_code == 200
    assert api("get", f"/topics/{names[0]}").status_code == 404


def test_an_edit_is_undone_unless_somebody_changed_it_since(
    page: Client, api: Api, traffic: Traffic, staff: User
) -> None:
    topic = traffic.topic("undone")
    there(api, f"/topics/{topic}")
    assert api("patch", f"/topics/{topic}", {"perm": 4}).status_code == 200
    change = Change.objects.get(name=topic)
    assert change.by == staff.get_username()
    assert f"undo/{change.pk}/" in page.get(f"{HOME}/topics/{topic}/edit/").content.decode()
    assert page.post(f"{HOME}/topics/{topic}/undo/{change.pk}/").status_code == 302
    assert api.get(f"/topics/{topic}")["perm"] == 6
    assert page.post(f"{HOME}/topics/{topic}/undo/{change.pk}/").status_code == 409, "once only"
    api("patch", f"/topics/{topic}", {"perm": 2})
    latest = Change.objects.filter(name=topic).first()
    assert latest is not None
    api("patch", f"/topics/{topic}", {"perm": 6})
    assert page.post(f"{HOME}/topics/{topic}/undo/{latest.pk}/").status_code == 409
    assert api.get(f"/topics/{topic}")["perm"] == 6
    assert page.post(f"{HOME}/topics/other/undo/{latest.pk}/").status_code == 404


@pytest.mark.must_beat(26)
def test_many_topics_get_the_same_settings_with_a_result_each(api: Api, traffic: Traffic) -> None:
    names = [traffic.topic("perm") for _ in range(2)]
    for name in names:
        there(api, f"/topics/{name}")
    body = {"names": [*names, "never-was"], "perm": 4}
    tried = api("post", "/topics:update", {**body, "dry_run": True}).json()
    assert [one["result"] for one in tried["results"]] == ["would", "would", "failed"]
    assert api.get(f"/topics/{names[0]}")["perm"] == 6, "nothing is changed"
    answer = api("post", "/topics:update", body)
    assert (answer.status_code, answer.json()["failed"]) == (207, 1)
    assert [api.get(f"/topics/{name}")["perm"] for name in names] == [4, 4]
    assert Change.objects.filter(name__in=names).count() == 2
    assert api("post", "/topics:update", {"names": names}).status_code == 400
    assert api("post", "/topics:update", {"names": names, "perm": 99}).status_code == 400

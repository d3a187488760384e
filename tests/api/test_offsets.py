"""Offset resets: preview, reset, check, undo; offline and online groups."""

from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.test import Client

from console.areas.offsets.models import OffsetReset
from console.audit.models import AuditRow
from tests.api.conftest import Api
from tests.api.stored import NASTY, RAW, numbered, routed_topic, store
from tests.api.test_pages import Shape, html
from tests.api.traffic import Traffic, poll

pytestmark = pytest.mark.must_beat(10)

STORED = 8


class Behind:
    """A group with offsets in a topic of two queues, eight messages per queue."""

    def __init__(self, traffic: Traffic) -> None:
        self.traffic = traffic
        self.topic = routed_topic(traffic, "moved")
        self.group = traffic.group("mover")
        for queue_id in (0, 1):
            store(traffic, *numbered(self.topic, STORED), queue_id=queue_id)
        traffic.commit(self.group, self.topic, 0, 3)
        traffic.commit(self.group, self.topic, 1, 5)

    @property
    def path(self) -> str:
        return f"/groups/{self.group}/offsets"


@pytest.fixture
def behind(traffic: Traffic) -> Behind:
    return Behind(traffic)


def offsets(api: Api, behind: Behind, group: str = "") -> list[int | None]:
    path = f"/groups/{group or behind.group}/offsets?topic={behind.topic}"
    return [each["offset"] for each in api.get(path)["items"]]


def wanted(plan: dict[str, Any]) -> list[int | None]:
    return [each["new"] for each in plan["moves"]]


@pytest.mark.parametrize(
    ("wish", "new", "skipped", "again"),
    [
        ({"to": "earliest"}, [0, 0], 0, 8),
        ({"to": "latest"}, [8, 8], 8, 0),
        ({"to": "exact", "offset": 4}, [4, 4], 1, 1),
        ({"to": "exact", "offset": 99}, [8, 8], 8, 0),
        ({"to": "shift", "by": 2}, [5, 7], 4, 0),
        ({"to": "shift", "by": -4}, [0, 1], 0, 7),
        ({"to": "time", "time_ms": 0}, [0, 0], 0, 8),
        ({"to": "time", "time_ms": 2**52}, [8, 8], 8, 0),
    ],
)
def test_the_preview_is_what_happens_and_undo_goes_back(
    api: Api, behind: Behind, wish: dict[str, Any], new: list[int], skipped: int, again: int
) -> None:
    body = {"topic": behind.topic, **wish}
    preview = api("post", f"{behind.path}?dry_run=1", body)
    planned = preview.json()
    assert (wanted(planned), planned["skipped"], planned["again"]) == (new, skipped, again)
    assert offsets(api, behind) == [3, 5], "a dry run moves nothing"
    answer = api("post", behind.path, body, **{"If-Match": preview.headers["ETag"]})
    assert (answer.status_code, wanted(answer.json())) == (201, new)
    assert offsets(api, behind) == new
    check = api.get(f"{behind.path}/resets/{answer.json()['reset']}")
    assert (check["moved"], check["may_undo"]) == (True, True)
    before = offsets(api, behind)
    planned = api("post", f"{behind.path}/resets/{check['id']}/undo?dry_run=1")
    assert (planned.status_code, planned.json()["dry_run"]) == (200, True)
    assert [each["new"] for each in planned.json()["moves"]] == [3, 5]
    assert offsets(api, behind) == before
    undo = api("post", f"{behind.path}/resets/{check['id']}/undo")
    assert (undo.status_code, offsets(api, behind)) == (201, [3, 5])
    assert api("post", f"{behind.path}/resets/{check['id']}/undo").status_code == 409


def test_some_queues_each_their_own_and_another_groups_place(
    api: Api, traffic: Traffic, behind: Behind
) -> None:
    [broker] = {each["broker"] for each in api.get(f"{behind.path}?topic={behind.topic}")["items"]}
    one = {"topic": behind.topic, "to": "latest", "queues": [{"broker": broker, "queue_id": 1}]}
    assert api("post", behind.path, one).status_code == 201
    assert offsets(api, behind) == [3, 8]
    each = [{"broker": broker, "queue_id": n, "offset": at} for n, at in ((0, 7), (1, 2))]
    assert api("post", behind.path, {"topic": behind.topic, "to": "each", "offsets": each})
    assert offsets(api, behind) == [7, 2]
    other = traffic.group("copier")
    copy = {"topic": behind.topic, "to": "copy", "group": behind.group}
    poll(lambda: api("post", f"/groups/{other}/offsets", copy).status_code == 201)
    assert offsets(api, behind, other) == [7, 2]
    history = api.get(f"{behind.path}/resets")["items"]
    assert [row["to"] for row in history] == ["each", "latest"]


def test_a_reconnecting_consumer_starts_there(api: Api, behind: Behind) -> None:
    received: list[tuple[int, int]] = []

    def take(message: Any) -> bool:
        received.append((message.queue_id, message.queue_offset))
        return True

    body = {"topic": behind.topic, "to": "exact", "offset": 6}
    assert api("post", behind.path, body).status_code == 201
    with behind.traffic.consumer(behind.group, behind.topic, accepts=take):
        poll(lambda: len(received) >= 4)
    assert sorted(received) == [(0, 6), (0, 7), (1, 6), (1, 7)]


def test_consumers_that_are_online_are_told(api: Api, behind: Behind) -> None:
    received: list[int] = []

    def take(message: Any) -> bool:
        received.append(message.queue_offset)
        return True

    with behind.traffic.consumer(behind.group, behind.topic, accepts=take):
        poll(lambda: offsets(api, behind) == [8, 8])
        received.clear()
        answer = api("post", behind.path, {"topic": behind.topic, "to": "exact", "offset": 2})
        assert (answer.status_code, len(answer.json()["online"])) == (201, 1)
        poll(lambda: sorted(received) == sorted([2, 3, 4, 5, 6, 7] * 2))
        poll(lambda: offsets(api, behind) == [8, 8])
        [first, _second] = api.get(f"{behind.path}?topic={behind.topic}")["items"]
        assert first["client"] == answer.json()["online"][0]


def test_a_state_that_somebody_changed_is_not_overwritten(api: Api, behind: Behind) -> None:
    seen = api("get", f"{behind.path}?topic={behind.topic}").headers["ETag"]
    behind.traffic.commit(behind.group, behind.topic, 0, 4)
    answer = api("post", behind.path, {"topic": behind.topic, "to": "latest"}, **{"If-Match": seen})
    assert answer.status_code == 412
    assert offsets(api, behind) == [4, 5]
    assert not OffsetReset.objects.exists()


def test_the_audit_list_has_before_and_after(api: Api, behind: Behind, staff: User) -> None:
    assert api("post", behind.path, {"topic": behind.topic, "to": "latest"}).status_code == 201
    row = AuditRow.objects.get(action="offsets.reset")
    assert (row.username, row.target, row.result) == (staff.username, behind.group, "done")
    assert row.after is not None
    moved = [(each["old"], each["new"]) for each in row.after["queues"]]
    assert moved == [(3, 8), (5, 8)]


def test_a_reader_may_look_and_not_move(reader: User, behind: Behind, local: Any) -> None:
    api = Api(reader)
    assert offsets(api, behind) == [3, 5]
    answer = api("post", behind.path, {"topic": behind.topic, "to": "latest"})
    assert (answer.status_code, offsets(api, behind)) == (403, [3, 5])


@pytest.mark.parametrize(
    "wish",
    [
        {},
        {"to": "somewhere"},
        {"to": "exact"},
        {"to": "exact", "offset": -1},
        {"to": "exact", "offset": 2**70},
        {"to": "shift"},
        {"to": "time", "time_ms": "now"},
        {"to": "copy"},
        {"to": "each"},
        {"to": "each", "offsets": [{"broker": "x"}]},
        {"to": "latest", "queues": [{"broker": "x", "queue_id": -1}]},
        {"to": "latest", "queues": "all"},
        {"to": "latest", "more": 1},
    ],
)
def test_a_wish_that_makes_no_sense_moves_nothing(
    api: Api, behind: Behind, wish: dict[str, Any]
) -> None:
    answer = api("post", behind.path, {"topic": behind.topic, **wish})
    assert answer.status_code == 400, answer.content
    assert offsets(api, behind) == [3, 5]


def test_what_is_not_there(api: Api, behind: Behind) -> None:
    assert api("get", behind.path).status_code == 400
    for topic in ("nosuch", NASTY, "%00"):
        assert api("get", f"{behind.path}?topic={quote(topic)}").status_code in {400, 404}
    latest = {"topic": behind.topic, "to": "latest"}
    assert api("post", "/groups/nosuch/offsets", latest).status_code == 404
    nowhere = {**latest, "queues": [{"broker": "nosuch", "queue_id": 0}]}
    assert api("post", behind.path, nowhere).status_code == 404
    stranger = {"topic": behind.topic, "to": "copy", "group": "nosuch"}
    assert api("post", behind.path, stranger).status_code == 404
    assert api("get", f"{behind.path}/resets/9").status_code == 404
    assert api("post", f"{behind.path}/resets/9/undo").status_code == 404


def test_the_wizard_shows_moves_and_undoes(page: Client, api: Api, behind: Behind) -> None:
    home = f"/clusters/local/groups/{behind.group}/offsets/"
    assert behind.topic in html(page, home)
    address = f"{home}?topic={behind.topic}&to=shift&by=2"
    shown = html(page, address)
    assert Shape(shown).wrong == []
    assert "<b>4</b> messages would be skipped" in shown
    each = [f"{b}:{q}:{o}" for b, q, o in planned_offsets(api, behind)]
    assert all(f'value="{value}"' in shown for value in each)
    answer = page.post(address, {"each": each}, follow=True)
    assert "Reset complete" in answer.content.decode()
    assert offsets(api, behind) == [5, 7]
    number = OffsetReset.objects.get().pk
    page.post(f"{home}{number}/undo/", follow=True)
    assert offsets(api, behind) == [3, 5]
    assert b"Nothing to undo" in page.post(f"{home}{number}/undo/", follow=True).content


def planned_offsets(api: Api, behind: Behind) -> list[tuple[str, int, int]]:
    body = {"topic": behind.topic, "to": "shift", "by": 2}
    plan = api("post", f"{behind.path}?dry_run=1", body).json()
    return [(each["broker"], each["queue_id"], each["new"]) for each in plan["moves"]]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("topic=&to=latest", 400),
        ("topic=x&to=nowhere", 400),
        ("topic={topic}&to=exact&offset=x", 400),
        ("topic={topic}&to=exact", 400),
        ("topic={topic}&to=time&time=yesterday", 400),
        ("topic={topic}&to=latest&queues=3", 400),
        ("topic={topic}&to=latest&queues=a:b:c", 400),
        ("topic={topic}&to=latest&queues=nosuch:0", 404),
        ("topic=nosuch&to=latest", 404),
        (f"topic={quote(NASTY)}&to=copy&group={quote(NASTY)}", 404),
    ],
)
def test_an_address_that_makes_no_sense(
    page: Client, behind: Behind, query: str, status: int
) -> None:
    home = f"/clusters/local/groups/{behind.group}/offsets/"
    answer = page.get(f"{home}?{query.format(topic=behind.topic)}")
    assert answer.status_code == status
    assert not any(raw in answer.content for raw in RAW)
    answer = page.post(f"{home}?topic={behind.topic}&to=latest", {"each": ["x", NASTY]})
    assert answer.status_code == 400

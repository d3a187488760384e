"""What can be done with dead letters: find, edit, dry run, other targets, discard, export."""

import csv
import io
import json
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.test import Client

from console.areas.deadletters.models import Discard, Resend
from console.audit.models import AuditRow
from console.gateway import gateway
from console.gateway.dead_letters import search as letter_search
from console.gateway.dead_letters import summary
from core_broker.client import AdminClient
from core_broker.message.model import Message, MessageExt
from core_broker.message.topics import TRACE_TOPIC
from tests.api.conftest import Api
from tests.api.stored import NASTY, RAW, Dead, ids, routed_topic, store, wait_for_topic
from tests.api.test_dead_letters_api import into, resent
from tests.api.test_pages import Shape, html
from tests.api.traffic import Traffic, poll
from trace.codec import SubAfter, SubBefore, encode_trace, message_keys

HOME = "/clusters/local/dlq/"


@pytest.fixture
def dead(traffic: Traffic) -> Dead:
    return Dead(traffic)


@pytest.fixture
def mixed(traffic: Traffic) -> Dead:
    """Letters of two topics, with tags, keys and bodies of their own; the newest is the last."""
    found = Dead(traffic, count=1)
    other = routed_topic(traffic, "other")
    found.add(Message(other, b'{"card": "Lost"}', tags="card", keys=("o-1", "c-7")), topic=other)
    found.add(Message(found.topic, b"\xff\xfe\x00", tags="card", properties={"tenant": "Acme"}))
    found.other = other  # type: ignore[attr-defined]
    return found


def letters(api: Api, group: str, query: str = "") -> dict[str, Any]:
    found: dict[str, Any] = api.get(f"/dlq/{group}/messages?{query}")
    return found


def offsets(answer: dict[str, Any]) -> list[int]:
    return [each["queue_offset"] for each in answer["items"]]


@pytest.mark.must_beat(3)
def test_the_overview_has_count_growth_consumers_and_the_reason(
    api: Api, page: Client, traffic: Traffic, dead: Dead
) -> None:
    store(traffic, Message(TRACE_TOPIC, b"no record", keys=("nobody",)))
    wait_for_topic(traffic, TRACE_TOPIC)
    newest = letters(api, dead.group)["items"][0]
    known = {"request_id": "r", "msg_id": newest["msg_id"], "group": dead.group}
    at_ms = newest["store_timestamp"]
    records = [
        SubBefore(timestamp_ms=at_ms - 9, **known),
        SubAfter(timestamp_ms=at_ms - 5, cost_ms=4, success=False, context_code=2, **known),
    ]
    store(traffic, Message(TRACE_TOPIC, encode_trace(records), keys=message_keys(records)))

    def row() -> dict[str, Any]:
        found = [each for each in api.get("/dlq")["items"] if each["group"] == dead.group]
        return found[0] if found and found[0]["count"] == 3 else {}

    found = poll(row)
    assert (found["last_hour"], found["dealt_with"], found["clients"]) == (3, 0, 0)
    with traffic.consumer(dead.group, dead.topic):
        poll(lambda: row().get("clients") == 1)
    gateway.close()  # what is kept of the reason is older than its trace
    why = poll(lambda: cause(api, dead.group, "exception"))
    assert (why["msg_id"], why["deliveries"]) == (newest["msg_id"], 1)
    shown = html(page, HOME)
    assert dead.group in shown
    assert Shape(shown).wrong == []


def cause(api: Api, group: str, wanted: str) -> dict[str, Any]:
    why: dict[str, Any] = api.get(f"/dlq/{group}")["why"]
    return why if why["cause"] == wanted else {}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("tag=card", [2, 1]),
        ("key=c-7", [1]),
        ("key=c", []),
        ("text=lost", [1]),
        ("text=ACME", [2]),
        ("topic={other}", [1]),
        ("tag=card&topic={topic}", [2]),
        ("state=open", [2, 1, 0]),
        ("state=discarded", []),
        ("begin_ms=4000000000000", []),
        ("end_ms=1", []),
        ("begin_ms=1&end_ms=4000000000000", [2, 1, 0]),
        ("limit=1&tag=card", [2]),
    ],
)
def test_letters_are_found_by_time_key_tag_topic_and_text(
    api: Api, page: Client, mixed: Dead, query: str, found: list[int]
) -> None:
    asked = query.format(topic=mixed.topic, other=mixed.other)  # type: ignore[attr-defined]
    assert offsets(letters(api, mixed.group, asked)) == found
    assert page.get(f"{HOME}{mixed.group}/?{asked}").status_code == 200


def test_a_filter_reads_on_where_its_budget_ended(
    api: Api, dead: Dead, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letter_search, "SCAN_MESSAGES_MAX", 1)
    seen: list[int] = []
    scanned, cursor = 0, ""
    while True:
        part = letters(api, dead.group, f"text=message 0&cursor={cursor}")
        seen += offsets(part)
        scanned += part["scanned"]
        if part["next_cursor"] is None:
            break
        cursor = part["next_cursor"]
    assert (seen, scanned) == ([0], 3)


@pytest.mark.must_beat(4)
def test_edited_and_sent_to_another_topic(
    api: Api, traffic: Traffic, dead: Dead, staff: User
) -> None:
    target = routed_topic(traffic, "repaired")
    [first, *_rest] = ids(letters(api, dead.group))
    received: list[MessageExt] = []
    body = {
        "ids": [first],
        "target": "topic",
        "topic": target,
        "edit": {
            "body": "repaired",
            "tags": "again",
            "keys": ["k-1", "k-2"],
            "properties": {"by": "ops"},
            "remove": ["nothing"],
        },
    }
    with traffic.consumer(f"{dead.group}-other", target, accepts=into(received)):
        dry = api("post", f"/dlq/{dead.group}/resend?dry_run=1", body).json()
        assert (dry["dry_run"], dry["planned"], dry["sent"]) == (True, 1, 0)
        assert not Resend.objects.exists()
        sent = api("post", f"/dlq/{dead.group}/resend", body)
        assert (sent.status_code, sent.json()["matched"]) == (200, 1)
        [message] = poll(lambda: resent(received))
    assert (message.body, message.tags, message.keys) == (b"repaired", "again", ["k-1", "k-2"])
    assert message.properties["by"] == "ops"
    assert Resend.objects.get().edited
    row = AuditRow.objects.get(action="deadletter.resend")
    assert row.after is not None
    assert (row.username, row.after["edited"]) == (
        staff.username,
        ["body", "tags", "keys", "by", "nothing"],
    )


@pytest.mark.must_beat(4)
def test_whatever_matches_is_sent_and_the_sum_is_what_matched(
    api: Api, traffic: Traffic, mixed: Dead
) -> None:
    assert api("delete", f"/topics/{mixed.other}").status_code == 200  # type: ignore[attr-defined]
    [untagged] = [
        e["offset_msg_id"] for e in letters(api, mixed.group)["items"] if e["tags"] == "t"
    ]
    assert api("post", f"/dlq/{mixed.group}/discard", {"ids": [untagged]}).status_code == 200
    result = api("post", f"/dlq/{mixed.group}/resend", {"filter": {}, "target": "origin"})
    found = result.json()
    assert result.status_code == 207
    assert (found["sent"], found["failed"], found["skipped"]) == (1, 1, 1)
    assert found["matched"] == 3
    assert all(each["reason"] for each in found["outcomes"] if each["result"] != "sent")


def test_a_letter_without_a_body_is_sent_again(api: Api, traffic: Traffic, dead: Dead) -> None:
    dead.add(Message(dead.topic, b"", tags="empty"))
    [empty] = letters(api, dead.group, "tag=empty")["items"]
    mine: list[MessageExt] = []
    with traffic.consumer(dead.group, dead.topic, accepts=into(mine)):
        answer = api("post", f"/dlq/{dead.group}/resend", {"ids": [empty["offset_msg_id"]]})
        assert answer.json()["sent"] == 1
        [message] = poll(lambda: resent(mine))
    assert (message.body, message.tags) == (b"", "empty")


def test_discarded_letters_are_skipped_until_they_are_restored(api: Api, dead: Dead) -> None:
    first, second, _third = ids(letters(api, dead.group))
    path = f"/dlq/{dead.group}"
    done = api("post", f"{path}/discard", {"ids": [first, first.lower(), second, "0" * 32]})
    assert (done.status_code, done.json()) == (207, {"done": 2, "skipped": 0, "failed": 1})
    assert api("post", f"{path}/discard", {"ids": [first]}).json()["skipped"] == 1
    assert api.get(path)["dealt_with"] == 2
    assert offsets(letters(api, dead.group, "state=open")) == [0]
    assert offsets(letters(api, dead.group, "state=discarded")) == [2, 1]
    assert api("post", f"{path}/resend", {"ids": [first]}).json()["skipped"] == 1
    back = api("post", f"{path}/restore", {"ids": [first, "1" * 32]}).json()
    assert back == {"done": 1, "skipped": 1, "failed": 0}
    assert Discard.objects.count() == 1
    assert api("post", f"{path}/resend", {"ids": [first]}).json()["sent"] == 1
    assert set(AuditRow.objects.values_list("action", flat=True)) == {
        "deadletter.discard",
        "deadletter.restore",
        "deadletter.resend",
    }


def test_many_groups_take_their_offsets_from_the_inventory(
    api: Api, dead: Dead, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = api.get(f"/dlq/{dead.group}")
    asked: list[str] = []

    async def topic_stats(_admin: AdminClient, _addr: str, topic: str) -> Any:
        asked.append(topic)
        return {}

    def row() -> dict[str, Any]:
        rows = api.get("/dlq")["items"]
        found = [each for each in rows if each["group"] == dead.group]
        return found[0] if found and found[0]["count"] == 3 else {}

    monkeypatch.setattr(summary, "TOPICS_ASKED_MAX", 0)
    monkeypatch.setattr(AdminClient, "topic_stats", topic_stats)
    found = poll(row)
    names = ("count", "last_hour", "oldest_ms", "newest_ms", "perm")
    assert [found[name] for name in names] == [alone[name] for name in names]
    assert f"%DLQ%{dead.group}" not in asked


def test_letters_leave_as_a_file(api: Api, page: Client, mixed: Dead) -> None:
    mixed.add(Message(mixed.topic, b"=1+1", keys=("@x",)))
    answer = api("get", f"/dlq/{mixed.group}/export")
    lines = [json.loads(line) for line in answer.getvalue().splitlines()]
    assert [each["tags"] for each in lines] == ["", "card", "card", "t"]
    assert (lines[1]["body"], lines[1]["body_encoding"]) == ("//4A", "base64")
    assert "attachment" in answer.headers["Content-Disposition"]
    table = page.get(f"{HOME}{mixed.group}/export/?format=csv&key=@x").getvalue().decode()
    [row] = csv.DictReader(io.StringIO(table))
    assert (row["body"], row["keys"], row["state"]) == ("'=1+1", "'@x", "open")
    assert api("get", f"/dlq/{mixed.group}/export?format=exe").status_code == 400
    assert api("get", "/dlq/nosuch/export").status_code == 404


def test_a_letter_is_edited_on_its_page(page: Client, api: Api, dead: Dead) -> None:
    [first, *_rest] = ids(letters(api, dead.group))
    letter = f"{HOME}{dead.group}/{first}/"
    shown = html(page, letter)
    assert Shape(shown).wrong == []
    assert "Edit and resend" in shown
    form = {"target": "retry", "tags": "new", "keys": "", "properties": "", "body": "message 2"}
    wrong = page.post(f"{letter}edit/", {**form, "properties": "no equals sign"})
    assert (wrong.status_code, Resend.objects.count()) == (400, 0)
    reserved = page.post(f"{letter}edit/", {**form, "properties": "UNIQ_KEY=x"})
    assert (reserved.status_code, Resend.objects.count()) == (400, 0)
    planned = page.post(f"{letter}edit/", {**form, "dry_run": "1"})
    assert b"1 would be sent, 0 would fail, 0 would be skipped." in planned.content
    sent = page.post(f"{letter}edit/", form)
    assert b"1 sent, 0 failed, 0 skipped." in sent.content
    row = Resend.objects.get()
    stored = api.get(f"/messages/{row.new_offset_msg_id}")
    assert (stored["tags"], stored["body"]["text"]) == ("new", "message 2")
    assert page.get(f"{letter}edit/").status_code == 302


def test_the_buttons_of_the_list(page: Client, api: Api, dead: Dead) -> None:
    first, second, _third = ids(letters(api, dead.group))
    home = f"{HOME}{dead.group}/"
    dry = page.post(f"{home}resend/", {"id": [first], "target": "retry", "dry_run": "1"})
    assert b"1 would be sent" in dry.content
    discarded = page.post(f"{home}discard/", {"id": first}, follow=True)
    assert b"dead letter discarded" in discarded.content
    restored = page.post(f"{home}discard/", {"id": first, "restore": "1"}, follow=True)
    assert b"is open again" in restored.content
    assert page.post(f"{home}discard/", {}, follow=True).status_code == 200
    topic = {"id": [second], "target": "topic", "to_topic": ""}
    assert page.post(f"{home}resend/", topic).status_code == 400
    forbidden = {**topic, "to_topic": "SCHEDULE_TOPIC_XXXX"}
    assert page.post(f"{home}resend/", forbidden).status_code == 400
    page.post(f"{home}resend/", {"id": [second], "target": "retry"})
    asked = page.post(f"{home}resend/", {"id": [second], "target": "retry"})
    assert b"Send 1 once more" in asked.content


@pytest.mark.parametrize(
    "body",
    [
        {"filter": {"tag": 1, "unknown": 2}},
        {"filter": {}, "ids": ["A"]},
        {"ids": ["A"], "target": "topic"},
        {"ids": ["A"], "target": "topic", "topic": "bad topic!"},
        {"ids": ["A"], "target": "topic", "topic": "RMQ_SYS_TRANS_HALF_TOPIC"},
        {"ids": ["A"], "target": "topic", "topic": "%DLQ%x"},
        {"ids": ["A"], "edit": {"body_base64": "not base64!"}},
        {"ids": ["A"], "edit": {"properties": {"UNIQ_KEY": "x"}}},
        {"ids": ["A"], "edit": {"properties": {"a\x01b": "x"}}},
        {"ids": ["A"], "edit": {"properties": {"a": "x\x02y"}}},
        {"ids": ["A"], "edit": {"properties": {"": "x"}}},
        {"ids": ["A"], "edit": {"remove": ["KEYS"]}},
        {"ids": ["A"], "edit": {"tags": "t" * 256}},
        {"ids": ["A"], "edit": "tags"},
        {"ids": ["A", "B"], "edit": {"body": "one for all"}},
    ],
)
def test_a_wish_that_makes_no_sense_sends_nothing(api: Api, dead: Dead, body: Any) -> None:
    answer = api("post", f"/dlq/{dead.group}/resend", body)
    assert answer.status_code == 400, answer.content
    assert not Resend.objects.exists()


@pytest.mark.parametrize(
    "query",
    [
        "state=lost",
        "begin_ms=x",
        "begin_ms=-1",
        f"key={'k' * 256}",
        "cursor=x",
        "end_ms=99999999999999999",
    ],
)
def test_a_filter_that_makes_no_sense(api: Api, page: Client, dead: Dead, query: str) -> None:
    assert api("get", f"/dlq/{dead.group}/messages?{query}").status_code == 400
    assert page.get(f"{HOME}{dead.group}/?{query}").status_code in {200, 400}


def test_what_people_write_is_shown_and_never_run(page: Client, dead: Dead) -> None:
    nasty = quote(NASTY)
    for path in (
        f"{dead.group}/?text={nasty}&key={nasty}",
        f"{dead.group}/replay/?text={nasty}",
        f"{nasty}/replay/",
    ):
        answer = page.get(f"{HOME}{path}")
        assert answer.status_code in {200, 404}
        assert not any(raw in answer.content for raw in RAW)
    assert api_ids_refused(page, dead)


def api_ids_refused(page: Client, dead: Dead) -> bool:
    answer = page.post(f"{HOME}{dead.group}/discard/", {"id": [NASTY * 9]}, follow=True)
    return not any(raw in answer.content for raw in RAW) and not Discard.objects.exists()

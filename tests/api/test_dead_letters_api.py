"""Dead letters through the REST API: overview, list, sending again with one outcome for each."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings

from console.areas.deadletters.ledger import ABANDONED_AFTER
from console.areas.deadletters.models import SENDING, Resend
from core_broker.message.model import Message, MessageExt
from tests.api.conftest import Api, browser
from tests.api.stored import NASTY, Dead, ids, routed_topic, store
from tests.api.test_roles import member
from tests.api.traffic import Traffic, poll
from tests.support.cluster import Cluster


@pytest.fixture
def dead(traffic: Traffic) -> Dead:
    return Dead(traffic)


def letters(api: Api, dead: Dead) -> list[dict[str, Any]]:
    """The group's dead letters, newest first."""
    found: list[dict[str, Any]] = api.get(f"/dlq/{dead.group}/messages")["items"]
    return found


def resend(api: Api, group: str, body: dict[str, Any], status: int) -> dict[str, Any]:
    answer = api("post", f"/dlq/{group}/resend", body)
    assert answer.status_code == status, answer.content
    result: dict[str, Any] = answer.json()
    if status in {200, 207}:
        counted = result["sent"] + result["failed"] + result["skipped"]
        assert counted == len(result["outcomes"]) == len({each.upper() for each in body["ids"]})
    return result


def test_the_overview_counts_dead_letters_and_reading_changes_no_permission(
    api: Api, traffic: Traffic, dead: Dead
) -> None:
    def mine() -> list[dict[str, Any]]:
        return [one for one in api.get("/dlq")["items"] if one["group"] == dead.group]

    [row] = poll(lambda: (found := mine()) and found[0]["count"] == 3 and found)
    assert (row["topic"], row["perm"]) == (f"%DLQ%{dead.group}", 2)
    assert 1_700_000_000_000 < row["oldest_ms"] <= row["newest_ms"]
    assert api.get("/dlq")["total"] >= 3
    one = api.get(f"/dlq/{dead.group}")
    assert (one["count"], one["failures"]) == (3, [])
    found = letters(api, dead)
    assert [each["queue_offset"] for each in found] == [2, 1, 0]
    assert {each["origin_topic"] for each in found} == {dead.topic}
    assert {each["resent_at"] for each in found} == {None}
    assert api.get(f"/messages/{found[0]['offset_msg_id']}")["body"]["text"] == "message 2"
    configs = traffic.admin(lambda admin: admin.topic_configs(traffic.broker_addr))
    assert configs[f"%DLQ%{dead.group}"].perm == 2


def test_letters_are_cut_into_pages(api: Api, dead: Dead) -> None:
    seen = letters(api, dead)
    first = api.get(f"/dlq/{dead.group}/messages?limit=2")
    rest = api.get(f"/dlq/{dead.group}/messages?limit=2&cursor={first['next_cursor']}")
    assert ids(first) + ids(rest) == [each["offset_msg_id"] for each in seen]
    assert rest["next_cursor"] is None


def test_a_letter_sent_to_the_retry_topic_reaches_its_group_as_it_was(
    api: Api, traffic: Traffic, dead: Dead, staff: User
) -> None:
    [sent] = dead.add(
        Message(dead.topic, b"precious", tags="T", keys=("k",), properties={"tenant": "acme"})
    )
    letter = letters(api, dead)[0]["offset_msg_id"]
    mine: list[MessageExt] = []
    others: list[MessageExt] = []
    with (
        traffic.consumer(dead.group, dead.topic, accepts=into(mine)),
        traffic.consumer(f"{dead.group}-other", dead.topic, accepts=into(others)),
    ):
        result = resend(api, dead.group, {"ids": [letter]}, 200)
        assert (result["sent"], result["outcomes"][0]["topic"]) == (1, f"%RETRY%{dead.group}")
        [message] = poll(lambda: resent(mine))
    assert (message.topic, message.msg_id) == (dead.topic, sent.msg_id)
    assert (message.tags, message.keys, message.reconsume_times) == ("T", ["k"], 0)
    assert message.properties["tenant"] == "acme"
    assert message.properties["RESENT_FROM"] == letter
    assert not resent(others)
    row = Resend.objects.get(offset_msg_id=letter)
    assert (row.result, row.by, row.target, row.msg_id) == ("sent", staff, "retry", sent.msg_id)
    assert row.new_offset_msg_id == result["outcomes"][0]["new_offset_msg_id"]


def test_a_letter_sent_to_its_origin_reaches_every_group(
    api: Api, traffic: Traffic, dead: Dead
) -> None:
    letter = letters(api, dead)[0]["offset_msg_id"]
    received: list[MessageExt] = []
    with traffic.consumer(f"{dead.group}-other", dead.topic, accepts=into(received)):
        result = resend(api, dead.group, {"ids": [letter], "target": "origin"}, 200)
        assert result["outcomes"][0]["topic"] == dead.topic
        [message] = poll(lambda: resent(received))
    assert (message.topic, message.body) == (dead.topic, b"message 2")
    assert "RETRY_TOPIC" not in message.properties


def test_what_was_sent_before_is_skipped_unless_it_is_wanted_again(api: Api, dead: Dead) -> None:
    first, second, third = ids({"items": letters(api, dead)})
    resend(api, dead.group, {"ids": [first, first.lower(), second]}, 200)
    result = resend(api, dead.group, {"ids": [first, third]}, 207)
    assert [each["result"] for each in result["outcomes"]] == ["skipped", "sent"]
    assert result["outcomes"][0]["reason"]
    resend(api, dead.group, {"ids": [first], "again": True}, 200)
    counted = Resend.objects.filter(offset_msg_id=first)
    assert [each.result for each in counted] == ["sent", "sent"]
    marked = {each["offset_msg_id"] for each in letters(api, dead) if each["resent_at"]}
    assert marked == {first, second, third}


def test_a_target_that_is_gone_fails_and_keeps_nothing_else_back(
    api: Api, traffic: Traffic, dead: Dead
) -> None:
    gone = routed_topic(traffic, "gone")
    dead.add(Message(gone, b"homeless"), topic=gone)
    homeless, *others = ids({"items": letters(api, dead)})
    assert api("delete", f"/topics/{gone}").status_code == 200
    wanted = [others[0], homeless, others[1]]
    result = resend(api, dead.group, {"ids": wanted, "target": "origin"}, 207)
    assert [each["result"] for each in result["outcomes"]] == ["sent", "failed", "sent"]
    assert [each["id"] for each in result["outcomes"]] == wanted
    assert gone in result["outcomes"][1]["reason"]
    row = Resend.objects.get(offset_msg_id=homeless)
    assert (row.result, row.reason) == ("failed", result["outcomes"][1]["reason"])
    again = resend(api, dead.group, {"ids": [homeless]}, 200)
    assert again["sent"] == 1, "a failure may be tried again, here with another target"


def test_what_is_no_dead_letter_of_the_group_is_not_sent(
    api: Api, traffic: Traffic, dead: Dead
) -> None:
    [living] = store(traffic, Message(dead.topic, b"alive"))
    stranger = Dead(traffic, count=1)
    [other] = ids({"items": letters(api, stranger)})
    wanted = [living.offset_msg_id, other, "F" * 32, "nonsense", NASTY[:40]]
    result = resend(api, dead.group, {"ids": wanted}, 207)
    assert (result["failed"], result["sent"]) == (5, 0)
    assert all(each["reason"] for each in result["outcomes"])


def test_two_at_once_send_a_letter_once(api: Api, dead: Dead) -> None:
    letter = letters(api, dead)[0]["offset_msg_id"]
    row = Resend.objects.create(
        cluster="local", group=dead.group, offset_msg_id=letter, batch=uuid4(), target="retry"
    )
    for again in (False, True):
        result = resend(api, dead.group, {"ids": [letter], "again": again}, 207)
        assert result["outcomes"][0]["reason"] == "Another request is resending the message."
    Resend.objects.filter(pk=row.pk).update(at=timezone.now() - ABANDONED_AFTER * 2)
    assert resend(api, dead.group, {"ids": [letter]}, 200)["sent"] == 1
    row.refresh_from_db()
    assert row.result == "failed"
    assert not Resend.objects.filter(result=SENDING).exists()


def test_a_cluster_that_is_away_fails_every_letter_and_the_ledger_knows(
    api: Api, settings: Settings
) -> None:
    settings.CONSOLE_CLUSTERS = {"local": "127.0.0.1:1"}
    result = resend(api, "group", {"ids": ["0" * 32, "1" * 32]}, 207)
    assert result["failed"] == 2
    assert "127.0.0.1:1" in result["outcomes"][0]["reason"]
    assert [row.result for row in Resend.objects.all()] == ["failed", "failed"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"ids": []},
        {"ids": "7F000001"},
        {"ids": [""]},
        {"ids": ["A" * 57]},
        {"ids": ["A"] * 1001},
        {"ids": [{"a": 1}]},
        {"ids": ["A"], "target": "elsewhere"},
        {"ids": ["A"], "again": "perhaps"},
        {"ids": ["A"], "targets": "origin"},
        [],
    ],
)
def test_a_wish_that_makes_no_sense_is_refused(api: Api, body: Any) -> None:
    answer = api("post", "/dlq/group/resend", body)
    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert not Resend.objects.exists()


def test_a_reader_sees_letters_and_sends_none(
    api: Api, reader: User, dead: Dead, local: Cluster
) -> None:
    found = ids({"items": letters(Api(reader), dead)})
    answer = Api(reader)("post", f"/dlq/{dead.group}/resend", {"ids": found})
    assert answer.status_code == 403
    assert not Resend.objects.exists()


@pytest.mark.parametrize(
    "group", ["nobody", "<script>", "%DLQ%", "a b", "订单", "..;", "g" * 300, "'; DROP TABLE"]
)
def test_a_group_without_dead_letters(api: Api, group: str) -> None:
    for path in (f"/dlq/{quote(group)}", f"/dlq/{quote(group)}/messages"):
        assert api.get(path, status=404)["type"] == "urn:gantry:problem:not-found"
    assert resend(api, quote(group), {"ids": ["0" * 32]}, 207)["failed"] == 1


@pytest.mark.parametrize("query", ["limit=0", "limit=201", "cursor=x"])
def test_a_list_that_makes_no_sense_is_refused(api: Api, dead: Dead, query: str) -> None:
    letters(api, dead)
    assert api("get", f"/dlq/{dead.group}/messages?{query}").status_code == 400


def into(received: list[MessageExt]) -> Callable[[MessageExt], bool]:
    """Accepts every message and keeps it."""

    def accept(message: MessageExt) -> bool:
        received.append(message)
        return True

    return accept


def resent(messages: list[MessageExt]) -> list[MessageExt]:
    return [each for each in messages if "RESENT_FROM" in each.properties]


def test_another_topic_as_target_needs_the_permission_to_send_there(
    api: Api, dead: Dead, traffic: Traffic, local: Cluster
) -> None:
    found, topic = ids({"items": letters(api, dead)}), routed_topic(traffic, "repaired")
    user = member("dan", f"deadletters:write:{dead.group}", "messages:write:mine-*")
    body = {"ids": found[:1], "target": "topic", "topic": topic, "edit": {"body": "forged"}}
    for path in (f"/dlq/{dead.group}/resend", f"/dlq/{dead.group}/resend?dry_run=1"):
        assert Api(user)("post", path, body).status_code == 403, path
    wish = {"target": "topic", "topic": topic, "rate": 10}
    assert Api(user)("post", f"/dlq/{dead.group}/replays", wish).status_code == 403
    page = browser(user)
    form = {"id": found[:1], "target": "topic", "to_topic": topic, "rate": 10}
    for path in ("resend", "replay", f"{found[0]}/edit"):
        answer = page.post(f"/clusters/local/dlq/{quote(dead.group)}/{path}/", form)
        assert answer.status_code == 403, path
    assert not Resend.objects.exists()
    assert Api(user)("post", f"/dlq/{dead.group}/resend", {"ids": found[:1]}).status_code == 200
    sender = member("sam", f"deadletters:write:{dead.group}", f"messages:write:{topic}")
    body["ids"] = found[1:2]
    assert Api(sender)("post", f"/dlq/{dead.group}/resend", body).status_code == 200

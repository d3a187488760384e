"""Masked fields: role A sees the card number, role B `***`, on every path to a message."""

import asyncio
import base64
import json
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from console.areas.messages import tails
from console.audit.models import AuditRow
from console.frame.masking import mask_of
from console.gateway import gateway
from console.gateway.messages.masks import MaskKind, MaskRule
from console.services.jobs import runner, tasks
from console.services.masking.models import MaskingRule
from core_broker.client import CompressionType, Producer, ProducerSettings
from core_broker.message.model import Message
from tests.api.conftest import API, Api, browser
from tests.api.stored import give_up, routed_topic, store, wait_for_topic
from tests.api.test_messages_tail_rest import STREAM
from tests.api.test_roles import member
from tests.api.traffic import WAIT_S, Traffic, poll
from trace.codec import Pub, encode_trace

CARD = "4111222233334444"
KEY = "customer-7788"
BODY = json.dumps({"order": 7, "pay": {"card": CARD}, "note": "fine"}).encode()
READS = ("messages:read", "deadletters:write", "messages:write", "traces:read", "search:read")
MORE = ("jobs:write", "exports:write", "topics:read", "pending:read", "audit:read")
PAGES = "/clusters/local"
MASKED = {'{"order":7,"pay":{"card":"***"},"note":"fine"}'}


def rule(kind: str, expression: str = "", topic: str = "*", cluster: str = "local") -> MaskingRule:
    return MaskingRule.objects.create(
        name=f"{kind} {topic} {expression}",
        cluster=cluster,
        topic=topic,
        kind=kind,
        expression=expression,
        changed_ms=1,
    )


@pytest.fixture
def topic(traffic: Traffic) -> str:
    return routed_topic(traffic, "cards")


@pytest.fixture
def masked_user(db: None) -> User:
    return member("masked", *READS, *MORE)


@pytest.fixture
def cleared(db: None) -> User:
    return member("cleared", *READS, *MORE, "messages:unmasked")


@pytest.fixture
def sent(db: None, traffic: Traffic, topic: str) -> str:
    """The offset message id of a message with a card number in body, property and keys."""
    message = Message(topic, BODY, keys=(KEY,), properties={"iban": CARD})
    [result] = store(traffic, message)
    rule("json", "$..card", topic)
    rule("property", "iban", topic)
    rule("keys", topic=topic)
    return result.offset_msg_id


@pytest.fixture
def group(traffic: Traffic, topic: str, sent: str) -> str:
    """A group with the message as its only dead letter."""
    name = traffic.group("mourner")
    letter = Message(topic, BODY, keys=(KEY,), properties={"iban": CARD})
    give_up(traffic, name, topic, store(traffic, letter))
    wait_for_topic(traffic, f"%DLQ%{name}")
    return name


def page_paths(topic: str, sent: str, group: str, letter: str) -> list[str]:
    return [
        f"{PAGES}/messages/?topic={topic}",
        f"{PAGES}/topics/{topic}/messages/",
        f"{PAGES}/messages/{sent}/",
        *(f"{PAGES}/messages/{sent}/?form={form}" for form in ("json", "text", "hex", "base64")),
        f"{PAGES}/messages/find/?q={sent}",
        f"{PAGES}/dlq/{group}/",
        f"{PAGES}/dlq/{group}/{letter}/",
        f"{PAGES}/dlq/{group}/export/?format=jsonl",
        f"{PAGES}/dlq/{group}/export/?format=csv",
        f"{API}/messages?topic={topic}",
        f"{API}/messages/{sent}",
        *(f"{API}/messages/{sent}?form={form}" for form in ("json", "text", "hex", "base64")),
        f"{API}/messages/find?q={sent}",
        f"{API}/dlq/{group}/messages",
        f"{API}/dlq/{group}/export",
        f"{API}/messages/{letter}",
        f"/message/viewMessage.query?msgId={sent}&topic={topic}",
        f"/dlqMessage/exportDlqMessage.do?consumerGroup={group}&msgId={letter}",
    ]


def content(client: Client, path: str) -> str:
    answer: Any = client.get(path, follow=True)
    assert answer.status_code == 200, (path, answer.content)
    return (b"".join(answer.streaming_content) if answer.streaming else answer.content).decode()


def forms_of(secret: str) -> tuple[str, ...]:
    plain = secret.encode()
    middles = {base64.b64encode(b"x" * at + plain + b"xxx").decode()[6:-8] for at in range(3)}
    return (secret, plain[:8].hex(" "), plain.hex(), *middles)


@pytest.mark.must_beat(34)
def test_role_a_sees_the_card_number_and_role_b_does_not(
    masked_user: User,
    cleared: User,
    local: object,
    traffic: Traffic,
    topic: str,
    sent: str,
    group: str,
) -> None:
    page, open_page = browser(masked_user), browser(cleared)
    letter = open_page.get(f"{API}/dlq/{group}/messages").json()["items"][0]["offset_msg_id"]
    with_card = 0
    for path in page_paths(topic, sent, group, letter):
        shown, hidden = content(open_page, path), content(page, path)
        with_card += any(form in shown for form in forms_of(CARD))
        for secret in (CARD, KEY):
            assert not any(form in hidden for form in forms_of(secret)), path
    assert with_card > 12, "the paths show the card number to a role with messages:unmasked"
    body = page.get(f"{API}/messages/{sent}").json()
    assert json.loads(body["body"]["text"])["pay"] == {"card": "***"}
    assert (body["properties"]["iban"], body["keys"], body["masked"]) == ("***", ["***"], True)
    assert body["body"]["sha256"] == "", "a digest would confirm guesses"
    assert open_page.get(f"{API}/messages/{sent}").json()["masked"] is False


def test_the_raw_body_is_refused_and_the_reason_names_the_permission(
    masked_user: User, cleared: User, local: object, topic: str, sent: str
) -> None:
    for path in (f"{PAGES}/messages/{sent}/body/", f"{API}/messages/{sent}/body"):
        refused = browser(masked_user).get(path)
        assert refused.status_code == 403
        assert f"messages:unmasked:{topic}" in refused.content.decode()
        assert browser(cleared).get(path).content == BODY


@pytest.mark.must_beat(34)
def test_no_filter_finds_a_masked_value(
    masked_user: User,
    cleared: User,
    local: object,
    topic: str,
    sent: str,
    group: str,
) -> None:
    queries = [
        f"/messages?topic={topic}&body={CARD[:6]}",
        f"/messages?topic={topic}&body=41.1&body_test=regex",
        f"/messages?topic={topic}&body=$.pay.card+~+4111&body_test=json",
        f"/messages?topic={topic}&body=$.pay.card+>+%224%22&body_test=json",
        f"/messages?topic={topic}&sql=iban+%3D+'{CARD}'",
        f"/messages/find?q={KEY}&topic={topic}",
        f"/dlq/{group}/messages?text={CARD[:6]}",
        f"/dlq/{group}/messages?key={KEY}",
    ]
    for query in queries:
        assert Api(masked_user).get(query)["items"] == [], query
        assert Api(cleared).get(query)["items"], query
    tried = {"topic": topic, "body": CARD}
    answer = Api(masked_user)("post", "/messages:test-filter", tried).json()
    assert answer["matched"] == 0
    counted = {"filter": {"text": CARD}, "target": "retry", "rate": 100}
    count = f"/dlq/{group}/replays?dry_run=1"
    assert Api(masked_user)("post", count, counted).json()["matched"] == 0
    assert Api(cleared)("post", count, counted).json()["matched"] == 1
    planned = {"filter": {"text": CARD}, "target": "retry"}
    resend = f"/dlq/{group}/resend?dry_run=1"
    assert Api(masked_user)("post", resend, planned).json()["matched"] == 0


def test_classic_shows_and_finds_no_masked_value(
    masked_user: User, local: object, topic: str, sent: str, group: str
) -> None:
    page = browser(masked_user)
    by_key = f"/message/queryMessageByTopicAndKey.query?topic={topic}&key={KEY}"
    assert page.get(by_key).json()["data"] == []
    for path, asked in (
        ("/message/queryMessagePageByTopic.query", {"topic": topic}),
        ("/dlqMessage/queryDlqMessageByConsumerGroup.query", {"consumerGroup": group}),
    ):
        answer = Api(masked_user).client.post(path, asked, "application/json").json()
        message = answer["data"]["page"]["content"][0]
        assert CARD not in json.dumps(message)
        assert '"card":"***"' in message["messageBody"]


def test_a_masked_dead_letter_is_resent_unchanged_but_to_no_other_topic(
    masked_user: User, local: object, traffic: Traffic, topic: str, sent: str, group: str
) -> None:
    other = routed_topic(traffic, "open")
    api = Api(masked_user)
    letter = api.get(f"/dlq/{group}/messages")["items"][0]["offset_msg_id"]
    moved = api(
        "post", f"/dlq/{group}/resend", {"ids": [letter], "target": "topic", "topic": other}
    )
    [outcome] = moved.json()["outcomes"]
    assert outcome["result"] == "failed"
    assert "masked" in outcome["reason"]
    page = browser(masked_user)
    shown = content(page, f"{PAGES}/dlq/{group}/{letter}/")
    assert "Fields are masked for you" in shown
    edited = {"tags": "again", "keys": "***", "properties": "iban=***", "target": "origin"}
    assert page.post(f"{PAGES}/dlq/{group}/{letter}/edit/", edited).status_code == 200
    newest = Api(member("second", *READS, "messages:unmasked")).get(f"/messages?topic={topic}")
    stored = newest["items"][0]
    assert (stored["tags"], stored["keys"]) == ("again", [KEY])
    again = Api(User.objects.get(username="second")).get(f"/messages/{stored['offset_msg_id']}")
    assert json.loads(again["body"]["text"]) == json.loads(BODY)
    assert again["properties"]["iban"] == CARD


def test_a_masked_message_does_not_fill_the_send_form(
    masked_user: User, cleared: User, local: object, sent: str
) -> None:
    path = f"{PAGES}/messages/send/?again={sent}"
    assert browser(masked_user).get(path).status_code == 403
    assert CARD in browser(cleared).get(path).content.decode()


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path) -> None:
    settings.GANTRY_HOME = tmp_path
    monkeypatch.setattr(tasks, "redis_problem", lambda: None)
    monkeypatch.setattr(tasks.run_job, "apply_async", lambda arguments, retry: None)


@pytest.mark.usefixtures("files")
def test_exports_are_masked_and_open_files_are_for_cleared_roles(
    masked_user: User, cleared: User, local: object, topic: str, sent: str
) -> None:
    for user, has_card in ((masked_user, False), (cleared, True)):
        answer = Api(user)("post", "/messages/exports", {"topic": topic, "format": "jsonl"})
        assert answer.status_code == 202, answer.content
        number = answer.json()["job"]
        runner.run(number, notify=lambda job: None)
        path = f"{API}/jobs/{number}/files/{topic}.jsonl"
        data = content(Api(user).client, path)
        assert (CARD in data, KEY in data) == (has_card, has_card)
    assert Api(masked_user).client.get(path).status_code == 403, "the file of the cleared role"


@pytest.mark.must_beat(34)
@pytest.mark.parametrize("is_late", [False, True])
def test_tails_are_masked_also_by_a_later_rule(
    masked_user: User,
    local: object,
    traffic: Traffic,
    topic: str,
    is_late: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    traffic.send(topic, 1)
    monkeypatch.setattr(tails, "MASK_FRESH_S", 0.0)
    rules = [] if is_late else [MaskRule(topic, MaskKind.JSON, "$..card")]
    # Other threads read the rules: not from a test's database.
    monkeypatch.setattr(gateway, "mask_rules", lambda cluster: tuple(rules))
    answer = Api(masked_user)("get", f"/topics/{topic}/tail?rate=500", Accept=STREAM)

    async def previews() -> list[str]:
        shown: list[str] = []
        done = asyncio.Event()
        async with aclosing(aiter(answer.streaming_content)) as stream:
            await anext(stream)
            sending = asyncio.create_task(asyncio.to_thread(send_until, done))
            try:
                async for event in stream:
                    data = json.loads(event.decode().split("data: ", 1)[1])
                    shown += [row["preview"] for row in data["rows"]]
                    if shown and not rules:
                        rules.append(MaskRule(topic, MaskKind.JSON, "$..card"))
                    if MASKED.intersection(shown):
                        return shown
            finally:
                done.set()
                await sending
                await tails.stop_tails()
        return shown

    def send_until(done: asyncio.Event) -> None:
        poll(lambda: store(traffic, Message(topic, BODY)) and done.is_set())

    shown = asyncio.run(asyncio.wait_for(previews(), WAIT_S))
    assert is_late or all(CARD not in each for each in shown)


@pytest.mark.parametrize(
    "body",
    [b"not json 4111222233334444", b"\xff\xfe\x01" + CARD.encode(), b'{"card": "4111222233334444"'],
)
def test_a_body_that_the_rule_cannot_read_is_masked_whole(
    masked_user: User, local: object, traffic: Traffic, topic: str, body: bytes
) -> None:
    [result] = store(traffic, Message(topic, body))
    rule("json", "$.card", topic)
    shown = Api(masked_user).get(f"/messages/{result.offset_msg_id}")
    assert (shown["body"]["text"], shown["masked"]) == ("***", True)


def test_compressed_bodies_are_masked(
    masked_user: User, local: object, traffic: Traffic, topic: str
) -> None:
    async def send() -> str:
        settings = ProducerSettings(compress_over_bytes=1, compress_type=CompressionType.ZSTD)
        async with Producer("packer", traffic.namesrv_addr, settings=settings) as producer:
            return (await producer.send(Message(topic, BODY + b" " * 5_000))).offset_msg_id

    sent = traffic._loop.wait(send(), WAIT_S)
    rule("json", "$..card", topic)
    shown = Api(masked_user).get(f"/messages/{sent}")["body"]
    assert json.loads(shown["text"])["pay"] == {"card": "***"}


def test_names_and_clusters_of_the_permission_count(
    db: None, local: object, topic: str, sent: str, traffic: Traffic, group: str
) -> None:
    by_name = member("by-name", *READS, f"messages:unmasked:{topic}")
    elsewhere = member("elsewhere", *READS, "messages:unmasked:*@other")
    letters = f"/dlq/{group}/messages"
    assert Api(by_name).get(f"/messages/{sent}")["masked"] is False
    assert Api(elsewhere).get(f"/messages/{sent}")["masked"] is True
    letter = Api(by_name).get(letters)["items"][0]["offset_msg_id"]
    assert CARD in json.dumps(Api(by_name).get(f"/messages/{letter}"))


def test_a_later_rule_finds_what_a_reader_sees(cleared: User, masked_user: User) -> None:
    rules = (MaskRule("*", MaskKind.BODY),)
    assert replace(mask_of(cleared, "local"), rules=rules).sees("orders")
    assert not replace(mask_of(masked_user, "local"), rules=rules).sees("orders")


def test_trace_bodies_show_no_hidden_keys(
    masked_user: User, cleared: User, local: object, traffic: Traffic, sent: str
) -> None:
    traces = routed_topic(traffic, "own-traces")
    record = Pub(timestamp_ms=1, group="g", topic="x", msg_id="m", keys=KEY)
    store(traffic, Message(traces, encode_trace([record])))
    for user, is_shown in ((masked_user, False), (cleared, True)):
        api = Api(user)
        [stored] = api.get(f"/messages?topic={traces}")["items"]
        assert stored["masked"] is not is_shown
        assert bool(api.get(f"/messages?topic={traces}&body={KEY}")["items"]) is is_shown


def test_the_audit_list_has_no_masked_texts(
    cleared: User, staff: User, local: object, topic: str, sent: str, files: Iterator[None]
) -> None:
    draft = {"topic": topic, "body": "x", "keys": [KEY]}
    assert Api(cleared)("post", "/messages", draft).status_code in (200, 201)
    Api(cleared)("post", "/messages/exports", {"topic": topic, "body": CARD, "format": "csv"})
    rows = [*AuditRow.objects.values_list("after", flat=True)]
    assert rows
    assert CARD not in json.dumps(rows)
    assert KEY not in json.dumps(rows)

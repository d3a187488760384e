"""A message's journey: attempts with and without traces, transaction checks, why none is there.

The cluster is quick: retries come after one second, transactions are checked after half of one.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from console.gateway import NotFound
from console.gateway.engine.session import ClusterSession
from console.gateway.messages.queue_slices import topic_queues
from console.gateway.traces import journey as questions
from console.gateway.traces import records
from core_broker.client import AdminClient, LocalTransactionState, SendResult, TransactionProducer
from core_broker.errors import RequestRefused
from core_broker.message.model import Message, MessageExt
from core_broker.message.topics import TRACE_TOPIC
from tests.api.conftest import Api, browser
from tests.api.stored import routed_topic, store, wait_for_topic
from tests.api.test_pages import Shape, html
from tests.api.traffic import Traffic, poll
from tests.support.cluster import Cluster
from trace.hooks import TraceHook

HOME = "/clusters/local/traces/"
QUICK = {
    "message_delay_level": "1s " * 17 + "1s",
    "transaction_time_out": 0,
    "transaction_check_interval": 500,
}
RETRIES = 2


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("quick"), **QUICK) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def life(quick: Cluster) -> Iterator[Traffic]:
    found = Traffic(quick.namesrv_addr, quick.broker_addr)
    yield found
    found.close()


@pytest.fixture
def api(quick: Cluster, staff: User, settings: Settings) -> Api:
    settings.CONSOLE_CLUSTERS = {"local": quick.namesrv_addr}
    return Api(staff)


@pytest.fixture
def page(api: Api, staff: User) -> Client:
    return browser(staff)


def refuse(_message: MessageExt) -> bool:
    raise ValueError("this listener takes nothing")


def journey(api: Api, msg_id: str) -> dict[str, Any]:
    found: dict[str, Any] = api.get(f"/traces/{msg_id}")
    return found


def dead(api: Api, msg_id: str, group: str) -> dict[str, Any]:
    """The journey as soon as the group has given up."""
    found = journey(api, msg_id)
    standings = {each["group"]: each["standing"] for each in found["standings"]}
    return found if standings.get(group) == "dead_lettered" else {}


@pytest.mark.must_beat(13)
def test_every_attempt_is_listed_in_order_with_its_duration(
    api: Api, page: Client, life: Traffic
) -> None:
    store(life, Message(TRACE_TOPIC, b"no record", keys=("nobody",)))
    wait_for_topic(life, TRACE_TOPIC)
    topic, group = routed_topic(life, "journey"), life.group("fails", retry_max_times=RETRIES)
    with life.consumer(group, topic, accepts=refuse, hooks=[TraceHook()], retries_max=RETRIES):
        [sent] = store(life, Message(topic, b"doomed"))
        poll(lambda: dead(api, sent.msg_id, group))

    def whole() -> dict[str, Any]:
        found = journey(api, sent.msg_id)
        attempts = [
            a for g in (found["timeline"] or {"groups": []})["groups"] for a in g["attempts"]
        ]
        is_whole = len(attempts) == RETRIES + 1 and all(a["state"] == "failed" for a in attempts)
        return found if is_whole else {}

    found = poll(whole)
    [told] = found["timeline"]["groups"]
    assert [each["retry_times"] for each in told["attempts"]] == [0, 1, 2]
    assert all(each["duration_ms"] is not None for each in told["attempts"])
    starts = [each["start_ms"] for each in told["attempts"]]
    assert starts == sorted(starts)
    assert (found["reason"], told["outcome"]) == (None, "dead_lettered")
    waits = [each for each in found["seen"] if each["kind"] == "retry_waits"]
    assert [each["count"] for each in waits] == [1, 2]
    assert all(each["until_ms"] - each["at_ms"] == 1_000 for each in waits)
    shown = html(page, f"{HOME}{sent.msg_id}/?topic={topic}")
    assert Shape(shown).wrong == []
    order = [
        shown.index(text) for text in ("retry 1 is due", "retry 2 is due", "Moved to the dead")
    ]
    assert order == sorted(order)
    assert shown.count("consumer exception") == RETRIES + 1
    letter = html(page, f"/clusters/local/dlq/{group}/")
    assert "Consumer exception" in letter


@pytest.mark.must_beat(13)
def test_without_traces_brokers_tell_of_retries_their_next_time_and_the_end(
    api: Api, page: Client, life: Traffic
) -> None:
    topic, group = routed_topic(life, "silent"), life.group("silent", retry_max_times=RETRIES)
    reader = life.group("reader")
    with life.consumer(group, topic, accepts=refuse, retries_max=RETRIES):
        [sent] = store(life, Message(topic, b"doomed"))
        life.commit(reader, topic, 0, 1)
        waiting = poll(lambda: retrying(api, sent.msg_id, group))
        [wait] = [each for each in waiting["seen"] if each["kind"] == "retry_waits"][:1]
        assert wait["until_ms"] == wait["at_ms"] + 1_000
        found = poll(lambda: dead(api, sent.msg_id, group))
    assert {each["group"]: each["standing"] for each in found["standings"]}[reader] == "consumed"
    kinds = [each["kind"] for each in found["seen"]]
    assert kinds == ["retry_waits", "retry_given"] * RETRIES
    assert [each["kind"] for each in found["timeline"]["events"]] == ["stored", "dead_lettered"]
    shown = html(page, f"{HOME}{sent.msg_id}/?topic={topic}")
    assert Shape(shown).wrong == []
    assert "consumed, by offset" in shown
    assert "Below is what the brokers know themselves." in shown
    [letter] = api.get(f"/dlq/{group}/messages")["items"]
    assert (
        api("post", f"/dlq/{group}/resend", {"ids": [letter["offset_msg_id"]]}).status_code == 200
    )
    with life.consumer(group, topic):
        poll(lambda: standing(api, sent.msg_id, group) == "consumed")
    assert "Resent by staff" in html(page, f"{HOME}{sent.msg_id}/?topic={topic}")


def retrying(api: Api, msg_id: str, group: str) -> dict[str, Any]:
    found = journey(api, msg_id)
    mine = [each for each in found["standings"] if each["group"] == group]
    return found if mine and mine[0]["standing"] == "retrying" else {}


def standing(api: Api, msg_id: str, group: str) -> str:
    found = journey(api, msg_id)["standings"]
    return next((each["standing"] for each in found if each["group"] == group), "")


@pytest.mark.must_beat(13)
def test_the_checks_of_a_transaction_are_on_the_journey(
    api: Api, page: Client, life: Traffic
) -> None:
    topic = routed_topic(life, "half")
    checks: list[str] = []

    def check(message: MessageExt) -> LocalTransactionState:
        checks.append(message.msg_id)
        enough = len(checks) > 1
        return LocalTransactionState.COMMIT_MESSAGE if enough else LocalTransactionState.UNKNOW

    async def run(_admin: AdminClient) -> SendResult:
        async with TransactionProducer(
            "half-producer",
            life.namesrv_addr,
            execute=lambda _message, _arg: LocalTransactionState.UNKNOW,
            check=check,
        ) as producer:
            sent = await producer.send_in_transaction(Message(topic, b"either or"))
            while len(checks) < 2:
                await asyncio.sleep(0.05)
            return sent

    sent = life.admin(run)
    found = poll(lambda: checked_journey(api, sent.msg_id))
    assert [each["kind"] for each in found["seen"]] == ["half", "checked", "checked"]
    shown = html(page, f"{HOME}{sent.msg_id}/")
    assert "Stored as the half of a transaction" in shown
    assert "The producer was asked what became of the transaction" in shown


def checked_journey(api: Api, msg_id: str) -> dict[str, Any]:
    found = journey(api, msg_id)
    stored = found["timeline"] and [e["kind"] for e in found["timeline"]["events"]] == ["stored"]
    return found if stored and len(found["seen"]) == 3 else {}


@pytest.mark.must_beat(14)
def test_four_causes_have_four_texts_and_four_codes(
    api: Api, page: Client, life: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(life, Message(TRACE_TOPIC, b"no record", keys=("nobody",)))
    wait_for_topic(life, TRACE_TOPIC)
    topic = routed_topic(life, "untraced")
    monkeypatch.setattr(questions, "RECORDS_DELAY_MS", 0)
    texts: dict[str, str] = {}

    def look(reason: str, heading: str) -> None:
        [sent] = store(life, Message(topic, reason.encode()))
        found = journey(api, sent.msg_id)
        assert found["reason"] == reason
        shown = html(page, f"{HOME}{sent.msg_id}/?topic={topic}")
        assert heading in shown
        texts[reason] = heading

    async def since_tomorrow(*_: Any) -> int:
        return 2**52

    async def refused(*_: Any) -> list[MessageExt]:
        raise RequestRefused(1, "the index is being rebuilt", "127.0.0.1:1")

    async def no_topic(session: ClusterSession, name: str) -> Any:
        if name == TRACE_TOPIC:
            raise NotFound("no such topic")
        return await topic_queues(session, name)

    look("client_off", "This message was not traced")
    with monkeypatch.context() as patched:
        patched.setattr(questions, "kept_since_ms", since_tomorrow)
        look("expired", "The traces of this message have expired")
    with monkeypatch.context() as patched:
        patched.setattr(records, "_trace_messages", refused)
        look("query_failed", "The traces could not be asked for")
    with monkeypatch.context() as patched:
        patched.setattr(records, "topic_queues", no_topic)
        look("broker_off", "This cluster keeps no traces")
    assert len(set(texts.values())) == 4

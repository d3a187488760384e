"""Replays of dead letters: counted, started, paced, taken over without sending twice."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from console.areas.deadletters import ledger, replays
from console.areas.deadletters.models import SENDING, Replay, Resend
from console.areas.deadletters.requests import filter_of, plan_of
from console.gateway import gateway
from console.services.jobs import runner, tasks
from console.services.jobs.models import Job
from console.services.jobs.presentation import change_of
from console.services.jobs.states import State
from core_broker.message.model import MessageExt
from tests.api.conftest import Api
from tests.api.stored import Dead, ids, routed_topic
from tests.api.test_dead_letters_api import into, resent
from tests.api.test_pages import Shape, html
from tests.api.traffic import Traffic, poll

pytestmark = pytest.mark.must_beat(5)

LETTERS = 7


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A task queue that records job numbers and runs no job."""
    taken: list[int] = []
    monkeypatch.setattr(tasks, "redis_problem", lambda: None)
    monkeypatch.setattr(
        tasks.run_job, "apply_async", lambda arguments, retry: taken.append(arguments[0])
    )
    return taken


@pytest.fixture
def dead(traffic: Traffic) -> Dead:
    return Dead(traffic, count=LETTERS)


def start(api: Api, dead: Dead, **wish: Any) -> dict[str, Any]:
    answer = api("post", f"/dlq/{dead.group}/replays", {"rate": 1_000, **wish})
    assert answer.status_code == 202, answer.content
    found: dict[str, Any] = answer.json()
    return found


def run(number: int) -> list[dict[str, Any]]:
    """Run a job in this process; return the messages of the live feed."""
    told: list[dict[str, Any]] = []
    runner.run(number, notify=lambda job: told.append(change_of(job)))
    return told


def one(api: Api, dead: Dead, number: int) -> dict[str, Any]:
    found: dict[str, Any] = api.get(f"/dlq/{dead.group}/replays/{number}")
    assert found["matched"] == found["sent"] + found["failed"] + found["skipped"]
    return found


def test_a_dry_run_counts_and_sends_nothing(api: Api, dead: Dead, queue: list[int]) -> None:
    path = f"/dlq/{dead.group}/replays?dry_run=1"
    assert api("post", path, {}).json() == {"matched": 7, "scanned": 7, "is_whole": True}
    text = {"filter": {"text": "message 3"}}
    assert api("post", path, text).json() == {"matched": 1, "scanned": 7, "is_whole": True}
    assert queue == []
    assert not Resend.objects.exists()
    assert not Replay.objects.exists()


def test_a_replay_sends_each_letter_once_and_tells_of_it(
    api: Api, page: Client, traffic: Traffic, dead: Dead, queue: list[int], staff: User
) -> None:
    before = ids(api.get(f"/dlq/{dead.group}/messages"))
    assert api("post", f"/dlq/{dead.group}/resend", {"ids": before[:1]}).json()["sent"] == 1
    begun = start(api, dead)
    assert (begun["total"], begun["state"], begun["by"]) == (LETTERS, "queued", staff.username)
    again = api("post", f"/dlq/{dead.group}/replays", {})
    assert again.status_code == 409, "one at a time for a group"
    mine: list[MessageExt] = []
    with traffic.consumer(dead.group, dead.topic, accepts=into(mine)):
        told = run(begun["job"])
        poll(lambda: len(resent(mine)) == LETTERS)
    assert told[-1]["state"] == "succeeded"
    assert told[-1]["done"] == LETTERS
    found = one(api, dead, begun["id"])
    assert (found["sent"], found["failed"], found["skipped"]) == (6, 0, 1)
    outcomes = api.get(f"/dlq/{dead.group}/replays/{begun['id']}/outcomes")["items"]
    assert {each["offset_msg_id"] for each in outcomes} == set(before)
    skipped = api.get(f"/dlq/{dead.group}/replays/{begun['id']}/outcomes?result=skipped")["items"]
    assert [each["offset_msg_id"] for each in skipped] == before[:1]
    for path in ("", f"{begun['id']}/", f"{begun['id']}/?result=failed"):
        shown = html(page, f"/clusters/local/dlq/{dead.group}/replay/{path}")
        assert Shape(shown).wrong == []
    assert "One outcome for each dead letter" in html(page, f"/clusters/local/jobs/{begun['job']}/")


def test_a_filter_a_target_and_an_edit_hold_for_all_that_match(
    api: Api, traffic: Traffic, dead: Dead, queue: list[int]
) -> None:
    target = routed_topic(traffic, "replayed")
    received: list[MessageExt] = []
    with traffic.consumer(f"{dead.group}-other", target, accepts=into(received)):
        begun = start(
            api,
            dead,
            filter={"text": "message 3"},
            target="topic",
            topic=target,
            edit={"tags": "again"},
        )
        run(begun["job"])
        [message] = poll(lambda: resent(received))
    assert (message.body, message.tags) == (b"message 3", "again")
    found = one(api, dead, begun["id"])
    assert (found["looked_at"], found["matched"], found["sent"]) == (LETTERS, 1, 1)


def test_what_dies_later_is_no_part_of_it(api: Api, dead: Dead, queue: list[int]) -> None:
    from core_broker.message.model import Message

    begun = start(api, dead)
    dead.add(Message(dead.topic, b"too late"))
    run(begun["job"])
    assert one(api, dead, begun["id"])["matched"] == LETTERS


def test_another_worker_goes_on_and_sends_nothing_twice(
    api: Api, dead: Dead, queue: list[int]
) -> None:
    begun = start(api, dead)
    replay = Replay.objects.get(pk=begun["id"])
    cluster = gateway.cluster("local")
    wanted, plan = filter_of("local", dead.group, {}), plan_of({})
    replays.step(cluster, replay, wanted, plan, most=2)
    # A step with resent dead letters, whose worker died before the replay was advanced …
    died = Replay.objects.get(pk=begun["id"])
    replays.step(cluster, died, wanted, plan, most=2)
    Replay.objects.filter(pk=begun["id"]).update(
        pieces=replay.pieces, looked_at=2, matched=2, sent=2
    )
    # … and one dead letter in flight at the crash.
    on_its_way = Resend.objects.order_by("-id")[0]
    Resend.objects.filter(pk=on_its_way.pk).update(result=SENDING)
    Job.objects.filter(pk=begun["job"]).update(state=State.FAILED)

    answer = api("post", f"/jobs/{begun['job']}/continue")
    assert answer.status_code == 202, answer.content
    assert run(answer.json()["id"])[-1]["state"] == "succeeded"
    found = one(api, dead, begun["id"])
    assert (found["matched"], found["sent"], found["failed"]) == (LETTERS, LETTERS - 1, 1)
    rows = Resend.objects.filter(batch=replay.batch)
    assert rows.count() == LETTERS, "each letter went through the ledger once"
    on_its_way.refresh_from_db()
    assert (on_its_way.result, on_its_way.reason) == ("failed", ledger.ABANDONED)


def test_a_target_that_is_gone_ends_the_job_and_keeps_its_counts(
    api: Api, dead: Dead, queue: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replays, "CONSECUTIVE_FAILURES_MAX", 2)
    begun = start(api, dead, target="topic", topic="nosuch-target", rate=10)
    [*_rest, last] = run(begun["job"])
    assert last["state"] == "failed"
    found = one(api, dead, begun["id"])
    assert (found["matched"], found["failed"]) == (2, 2)
    assert "nosuch-target" in Job.objects.get(pk=begun["job"]).error


def test_a_cancelled_replay_stops_between_letters(
    api: Api, dead: Dead, queue: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = start(api, dead, rate=5)
    steps = replays.step

    def step_and_cancel(*args: Any, **more: Any) -> Any:
        outcomes = steps(*args, **more)
        assert api("post", f"/jobs/{begun['job']}/cancel").status_code == 202
        return outcomes

    monkeypatch.setattr(replays, "step", step_and_cancel)
    assert run(begun["job"])[-1]["state"] == "cancelled"
    assert 0 < one(api, dead, begun["id"])["sent"] < LETTERS


def test_the_page_starts_a_replay(page: Client, dead: Dead, queue: list[int]) -> None:
    home = f"/clusters/local/dlq/{dead.group}/replay/"
    shown = html(page, f"{home}?text=message")
    assert "7 dead letters match" in shown
    assert Shape(shown).wrong == []
    answer = page.post(f"{home}?text=message", {"target": "retry", "rate": "50"})
    assert (answer.status_code, len(queue)) == (302, 1)
    assert Replay.objects.get().wish["filter"] == {
        "begin_ms": None,
        "end_ms": None,
        "text": "message",
    }
    wrong = page.post(home, {"target": "retry", "rate": "0"})
    assert (wrong.status_code, len(queue)) == (400, 1)


def test_without_a_queue_nothing_is_left_behind(api: Api, dead: Dead, settings: Settings) -> None:
    settings.REDIS_URL = ""
    answer = api("post", f"/dlq/{dead.group}/replays", {})
    assert answer.status_code == 503
    assert not Replay.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        {"rate": 0},
        {"rate": 10**9},
        {"rate": "fast"},
        {"filter": {"state": "lost"}},
        {"target": "topic"},
        {"edit": {"properties": {"KEYS": "x"}}},
        {"ids": ["A"]},
        [],
    ],
)
def test_a_wish_that_makes_no_sense(api: Api, dead: Dead, queue: list[int], body: Any) -> None:
    assert api("post", f"/dlq/{dead.group}/replays", body).status_code == 400
    assert api("post", f"/dlq/{dead.group}/replays?dry_run=perhaps", {}).status_code == 400
    assert queue == []


def test_what_is_not_there(api: Api, dead: Dead, queue: list[int]) -> None:
    assert api("post", "/dlq/nosuch/replays", {}).status_code == 404
    assert api("get", f"/dlq/{dead.group}/replays/9").status_code == 404
    assert api("get", f"/dlq/{dead.group}/replays/9/outcomes").status_code == 404
    assert api.get("/dlq/nosuch/replays") == {"items": []}
    begun = start(api, dead)
    outcomes = f"/dlq/{dead.group}/replays/{begun['id']}/outcomes"
    for query in ("result=lost", "cursor=x", "limit=0"):
        assert api("get", f"{outcomes}?{query}").status_code == 400

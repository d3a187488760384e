"""Two consoles and two workers on PostgreSQL and Redis.

Each alarm is sent once and each job runs once, both consoles show the same, and a session is valid
at both. A worker and a console are killed while an alarm fires.
"""

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from tests.api.traffic import Traffic
from tests.browser.waiting import wait_until
from tests.support import postgres
from tests.support.cluster import Cluster
from tests.support.console_session import ConsoleSession
from tests.support.scaled_console import PASSWORD, Running, ScaledConsole
from tests.support.webhooks import Hook, webhook

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.must_beat(39),
    pytest.mark.skipif(postgres.why_not() is not None, reason=str(postgres.why_not())),
]
#: A sample every 10 s, and leases of 30 s of a process that was killed.
SOON_S = 240
#: Lists with exports of their own: jobs of different lists run at the same time.
TABLES = ("topics", "groups", "clients")
People = tuple[ConsoleSession, ConsoleSession]


@pytest.fixture(scope="module")
def scaled(
    shared_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ScaledConsole]:
    home = tmp_path_factory.mktemp("scaled")
    with ScaledConsole(
        home,
        shared_cluster.namesrv_addr,
        CONSOLE_EVALUATION_SECONDS="2",
        CONSOLE_ALARM_GROUP_SECONDS="0",
        CONSOLE_ALARM_NETWORKS="127.0.0.0/8",
    ) as scaled:
        yield scaled


@pytest.fixture
def traffic(shared_cluster: Cluster) -> Iterator[Traffic]:
    found = Traffic(shared_cluster.namesrv_addr, shared_cluster.broker_addr)
    yield found
    found.close()


@pytest.fixture
def hook() -> Iterator[Hook]:
    with webhook() as found:
        yield found


@pytest.fixture
def people(scaled: ScaledConsole) -> People:
    """One browser that signed in at the first console, at both consoles."""
    first = ConsoleSession(scaled.consoles[0].url, PASSWORD)
    return first, ConsoleSession.with_cookies(scaled.consoles[1].url, first.cookies)


def test_one_session_is_valid_at_both_consoles(people: People) -> None:
    first, second = people
    for person in (first, second):
        assert person.api("GET", "whoami")[1]["username"] == "admin"
    second.post("/accounts/logout/", {})
    assert first.api("GET", "whoami")[0] == 401


def test_each_job_runs_once_and_both_feeds_show_it(scaled: ScaledConsole, people: People) -> None:
    first, second = people
    with heard(scaled.consoles[0], first) as at_first, heard(scaled.consoles[1], second) as other:
        joined = partial(have_joined, (at_first, other), first)
        wait_until(joined, "both feeds to have joined", SOON_S)
        before = tasks_received(scaled)
        # Each export is requested at both consoles at the same time.
        with ThreadPoolExecutor() as pool:
            answers = [
                answer
                for table in TABLES
                for answer in pool.map(partial(export, table), (first, second))
            ]
        statuses = Counter(status for status, _body in answers)
        assert statuses[202] >= len(TABLES)
        assert set(statuses) <= {202, 409}
        jobs = sorted(body["job"] for status, body in answers if status == 202)
        for feed in (at_first, other):
            wait_until(partial(has_ended, feed, jobs), "the end of all jobs", SOON_S)
    for number in jobs:
        path = f"clusters/local/jobs/{number}"
        seen = [person.api("GET", path)[1] for person in (first, second)]
        assert seen[0]["state"] == "succeeded", seen[0]
        assert seen[0] == seen[1]
    query = "SELECT id FROM jobs_job WHERE worker <> '' AND id >= %s ORDER BY id"
    assert [number for (number,) in scaled.database.rows(query, jobs[0])] == jobs
    assert tasks_received(scaled) - before == len(jobs)


def test_an_alarm_is_sent_once_over_kills_of_a_worker_and_a_console(
    scaled: ScaledConsole, people: People, traffic: Traffic, hook: Hook
) -> None:
    first, second = people
    topic, group = traffic.topic(write_queue_nums=1, read_queue_nums=1), traffic.group()
    traffic.send(topic, 20)
    traffic.commit(group, topic, 0, 1)
    rule = f"lag of {group}"
    consoles = scaled.consoles
    with (
        heard(consoles[0], first, "alarms") as at_first,
        heard(consoles[1], second, "alarms") as other,
    ):
        for feed in (at_first, other):
            wait_until(partial(has_joined, feed, first), "the feed to have joined", SOON_S)
        create_rule(first, rule, group, hook)
        wait_until(lambda: hook.events(rule) == ["firing"], "the firing notice", SOON_S)
        for feed in (at_first, other):
            for changed in ("rules", "alarms", "notices"):
                wait_until(partial(is_heard, feed, changed), f"{changed} in the feed", SOON_S)

    holder = worker_with_lease(scaled)
    holder.kill()
    scaled.consoles[0].kill()
    wait_until(lambda: states(second, rule) == ["firing"], "the alarm at the other console")
    scaled.restart_console(0)
    assert states(first, rule) == ["firing"]

    traffic.commit(group, topic, 0, 20)
    wait_until(lambda: "resolved" in hook.events(rule), "the resolved notice", SOON_S)
    assert worker_with_lease(scaled) is not holder
    scaled.restart_worker(scaled.workers.index(holder))
    wait_until(
        lambda: states(first, rule) == states(second, rule) == ["resolved"],
        "the same history at both",
    )
    assert hook.events(rule) == ["firing", "resolved"]
    query = "SELECT event, state, attempts FROM alarms_delivery WHERE rule_name = %s ORDER BY id"
    sent = scaled.database.rows(query, rule)
    assert sent == [("firing", "sent", 1), ("resolved", "sent", 1)]
    assert samples_are_there(first, group)
    assert samples_are_there(second, group)
    ((frames,),) = scaled.database.rows("SELECT count(*) FROM history_frame")
    assert frames, "samples are in PostgreSQL, and not in the folder that the processes share"
    assert not (scaled.home / "history").exists()


def tasks_received(scaled: ScaledConsole) -> int:
    """The number of jobs that the workers took from the queue."""
    logs = (worker.log.read_text(errors="replace") for worker in scaled.workers)
    return sum(len(re.findall(r"Task console\.jobs\.run\[\S+\] received", log)) for log in logs)


def export(table: str, person: ConsoleSession) -> tuple[int, Any]:
    return person.api("POST", "clusters/local/exports", {"table": table})


def create_rule(person: ConsoleSession, rule: str, group: str, hook: Hook) -> None:
    receiver = {"name": rule, "kind": "webhook", "url": hook.url, "all_rules": False}
    status, body = person.api("POST", "clusters/local/alarm-receivers", receiver)
    assert status == 201, body
    fields = {
        "name": rule,
        "source": "metric",
        "scope": "group",
        "metric": "lag",
        "threshold": 10,
        "pattern": group,
        "for_s": 0,
        "clear_for_s": 0,
        "severity": "warning",
        "receivers": [body["id"]],
    }
    status, body = person.api("POST", "clusters/local/alarm-rules", fields)
    assert status == 201, body


def states(person: ConsoleSession, rule: str) -> list[str]:
    """The states of the rule's alarms, the open ones first."""
    found = []
    for state in ("open", "resolved"):
        status, body = person.api("GET", f"clusters/local/alarms?state={state}")
        assert status == 200, body
        found += [each["state"] for each in body["items"] if each["rule_name"] == rule]
    return found


def worker_with_lease(scaled: ScaledConsole) -> Running:
    """The worker that evaluates."""
    ((holder,),) = scaled.database.rows("SELECT holder FROM leases_lease WHERE name = 'findings'")
    number = int(holder.split(":")[1])
    return next(each for each in scaled.workers if each.pid == number)


def samples_are_there(person: ConsoleSession, group: str) -> bool:
    path = f"clusters/local/history?metric=lag&group={group}&range=15m"
    points = person.api("GET", path)[1]["max"]
    return max(value for value in points if value is not None) == 19


@contextmanager
def heard(
    console: Running, person: ConsoleSession, feed_name: str = "jobs"
) -> Iterator[list[dict[str, Any]]]:
    """The messages of a feed, read by a thread."""
    address = console.url.replace("http://", "ws://") + f"/ws/clusters/local/{feed_name}"
    cookie = "; ".join(f"{name}={value}" for name, value in person.cookies.items())
    found: list[dict[str, Any]] = []
    with connect(
        address, origin=Origin(console.url), additional_headers={"Cookie": cookie}, proxy=None
    ) as feed:
        listener = threading.Thread(target=listen, args=(feed, found.append))
        listener.start()
        try:
            yield found
        finally:
            feed.close()
            listener.join()


def listen(feed: ClientConnection, add: Callable[[dict[str, Any]], None]) -> None:
    for message in feed:
        add(json.loads(message))


def has_joined(feed: list[dict[str, Any]], person: ConsoleSession) -> bool:
    """Whether a feed announces changes: a feed accepts the connection before it joins."""
    silence = {"pattern": "nobody", "reason": "to be announced", "duration_s": 60}
    status, body = person.api("POST", "clusters/local/alarm-silences", silence)
    assert status == 201, body
    return is_heard(feed, "silences")


def have_joined(feeds: Sequence[list[dict[str, Any]]], person: ConsoleSession) -> bool:
    """Run a job to its end; return whether each feed has announced a job so far."""
    status, body = export(TABLES[0], person)
    assert status == 202, body
    path = f"clusters/local/jobs/{body['job']}"
    wait_until(lambda: person.api("GET", path)[1]["state"] == "succeeded", "the job's end", SOON_S)
    return all(any("id" in message for message in feed) for feed in feeds)


def is_heard(feed: list[dict[str, Any]], changed: str) -> bool:
    return {"changed": changed} in feed


def has_ended(feed: list[dict[str, Any]], jobs: list[int]) -> bool:
    """Whether the feed has announced the end of these jobs, and of no other job since."""
    ended = {each["id"] for each in feed if each.get("state") == "succeeded"}
    return sorted(number for number in ended if number >= jobs[0]) == jobs

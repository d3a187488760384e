"""Replica sets: pages and REST resources with three real replicas and a controller."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from urllib.request import urlopen

import pytest
from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.test import Client
from django.utils.html import strip_tags
from django.utils.translation import override
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from console.audit.models import AuditRow
from console.gateway import gateway, now_ms
from console.gateway.replicas.listing import replica_sets
from console.services.clusters.models import ReadOnlyCluster
from console.services.replicas import watching
from console.services.replicas.models import Cause, RoleChange, WatchSpan
from tests.api.conftest import Api, browser
from tests.api.traffic import poll
from tests.support.cluster import Program
from tests.support.replica_set import BROKER_NAME, SIDE_PORT, ReplicaSet

SETS = "/replica-sets"
ONE = f"{SETS}/{BROKER_NAME}"
PAGE = "/clusters/local/replicas/"


@pytest.fixture(scope="module")
def replicas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplicaSet]:
    with ReplicaSet(tmp_path_factory.mktemp("replicas")) as found:
        for replica in found.replicas:
            replica.start()
        yield found


@pytest.fixture
def trio(replicas: ReplicaSet, settings: Settings) -> ReplicaSet:
    """The cluster of three replicas, configured in the console as `local`."""
    settings.CONSOLE_CLUSTERS = {"local": replicas.namesrv_addr}
    return replicas


@pytest.fixture
def call(staff: User, trio: ReplicaSet) -> Api:
    return Api(staff)


def in_sync(call: Api) -> dict[str, Any]:
    """Wait until the set is complete, and every replica is a member of the sync-state set."""

    def complete() -> dict[str, Any]:
        answer = call("get", ONE)
        found: dict[str, Any] = answer.json().get("replica_set", {})
        members = found.get("replicas", [])
        done = len(members) == 3 and all(
            one["in_sync"] and one["end_offset"] is not None and one["state"] == "up"
            for one in members
        )
        return found if done and found["has_master"] else {}

    return poll(complete)


def slave_of(found: dict[str, Any]) -> dict[str, Any]:
    return next(one for one in found["replicas"] if one["role"] == "slave")


def test_the_replicas_of_a_set(call: Api) -> None:
    found = in_sync(call)
    roles = sorted(one["role"] for one in found["replicas"])
    assert roles == ["master", "slave", "slave"]
    assert found["replicas"][0]["role"] == "master"
    assert (found["mode"], found["name"]) == ("controllers", BROKER_NAME)
    assert found["master_epoch"] >= 1
    assert found["confirm_offset"] == found["replicas"][0]["end_offset"]
    assert all(one["lag_bytes"] == one["lag_ms"] == 0 for one in found["replicas"][1:])
    assert found["replicas"][0]["lag_bytes"] is None
    assert found["replicas"][0]["epochs"][-1]["number"] == found["master_epoch"]
    assert [one["name"] for one in call.get(SETS)["items"]] == [BROKER_NAME]
    call.get(f"{SETS}/nobody", 404)


def test_the_controllers_and_their_leader(call: Api, trio: ReplicaSet) -> None:
    (group,) = call.get("/controllers")["items"]
    assert [one["addr"] for one in group["controllers"]] == trio.controller_addrs
    assert group["leader"] == trio.controller_addrs[0]
    assert group["controllers"][0]["role"] == "leader"
    assert group["controllers"][0]["name"] == "n0"
    assert group["broker_names"] == [BROKER_NAME]


def test_an_election_by_rest(call: Api) -> None:
    """Dry run, refusals, the election with its audit row and its role change."""
    found = in_sync(call)
    watching.observe("local", gateway.cluster("local").ask(replica_sets).value, now_ms())
    master, slave = found["replicas"][0], slave_of(found)
    path = f"{ONE}/election"
    answer = call("post", path, {"id": master["id"]})
    assert answer.status_code == 409, answer.content
    assert call("post", path, {"id": 99}).status_code == 404
    for body in ({}, {"id": -1}, {"id": "x"}, {"id": 2**64}, {"id": slave["id"], "more": 1}):
        assert call("post", path, body).status_code == 400, body
    planned = call("post", f"{path}?dry_run=true", {"id": slave["id"]})
    assert planned.status_code == 200, planned.content
    assert planned.json()["before"]["addr"] == master["addr"]
    assert planned.json()["after"] == {"id": slave["id"], "addr": slave["addr"], "epoch": None}
    stale = call("post", path, {"id": slave["id"]}, **{"If-Match": '"0-0"'})
    assert stale.status_code == 412
    assert in_sync(call)["master_epoch"] == found["master_epoch"], "nothing was elected yet"

    elected = call("post", path, {"id": slave["id"]})
    assert elected.status_code == 200, elected.content
    after = elected.json()["after"]
    assert (after["id"], after["addr"]) == (slave["id"], slave["addr"])
    assert after["epoch"] > found["master_epoch"]
    row = AuditRow.objects.filter(action="replica.elect", result="done").get()
    before, after = row.before or {}, row.after or {}
    assert (row.target, before["master"], after["master"]) == (
        *(BROKER_NAME, master["addr"], slave["addr"]),
    )
    now = in_sync(call)
    assert now["replicas"][0]["id"] == slave["id"]
    changes = call.get(f"{ONE}/role-changes")
    newest = changes["items"][0]
    assert (newest["cause"], newest["username"]) == ("operator", "staff")
    assert (newest["previous_addr"], newest["addr"]) == (master["addr"], slave["addr"])
    assert changes["watched_since_ms"]
    assert call.get(f"{ONE}/role-changes?limit=1")["total"] == len(changes["items"])
    call.get(f"{ONE}/role-changes?limit=0", 400)


def test_an_election_by_the_page_needs_the_typed_name(call: Api, staff: User) -> None:
    found = in_sync(call)
    slave = slave_of(found)
    page = browser(staff)
    text = page.get(PAGE).content.decode()
    assert f'data-epoch="{found["master_epoch"]}"' in text
    path = f"{PAGE}{BROKER_NAME}/elect/{slave['id']}/"
    shown = page.get(path).content.decode()
    assert found["replicas"][0]["addr"] in shown
    etag = f"{found['master_epoch']}-{found['sync_state_set_epoch']}"
    for name in ("", "broker-b", BROKER_NAME.upper()):
        refused = page.post(path, {"typed_name": name, "etag": etag})
        assert refused.status_code == 422, name
    changed = page.post(path, {"typed_name": BROKER_NAME, "etag": "0-0"})
    assert changed.headers["Location"] == path
    assert in_sync(call)["master_epoch"] == found["master_epoch"]
    current = in_sync(call)
    etag = f"{current['master_epoch']}-{current['sync_state_set_epoch']}"
    done = page.post(path, {"typed_name": BROKER_NAME, "etag": etag})
    assert done.status_code == 302, done.content
    assert done.headers["Location"] == f"{PAGE}{BROKER_NAME}/"
    assert in_sync(call)["replicas"][0]["id"] == slave["id"]
    text = page.get(f"{PAGE}{BROKER_NAME}/?range=10m").content.decode()
    assert 'data-last-failover="operator"' in text or "Not watched yet" in text
    assert page.get(f"{PAGE}{BROKER_NAME}/elect/{slave['id']}/").status_code == 200
    assert page.get(f"{PAGE}nobody/").status_code == 404
    assert page.get(f"{PAGE}{BROKER_NAME}/elect/99/").status_code == 404


def test_only_administrators_elect_and_never_in_a_read_only_cluster(
    call: Api, operator: User, staff: User
) -> None:
    found = in_sync(call)
    slave = slave_of(found)
    assert Api(operator)("post", f"{ONE}/election", {"id": slave["id"]}).status_code == 403
    client: Client = browser(operator)
    assert client.get(f"{PAGE}{BROKER_NAME}/elect/{slave['id']}/").status_code == 403
    assert "/elect/" not in client.get(PAGE).content.decode()
    ReadOnlyCluster.objects.create(cluster="local", since_ms=1)
    answer = call("post", f"{ONE}/election", {"id": slave["id"]})
    assert (answer.status_code, answer.json()["code"]) == (403, "read_only")
    assert "/elect/" not in browser(staff).get(PAGE).content.decode()
    assert in_sync(call)["master_epoch"] == found["master_epoch"]


def test_metrics_of_roles_and_elections(call: Api, trio: ReplicaSet) -> None:
    master = in_sync(call)["replicas"][0]
    for replica in trio.replicas:
        found = metrics_of(replica.program)
        role = "master" if replica.addr == master["addr"] else "slave"
        assert {name for name, value in found["rocketmq_replica_role"].items() if value} == {role}
        assert found["rocketmq_replica_epoch"][""] == master["epochs"][-1]["number"]
        sizes = found.get("rocketmq_replica_sync_state_set_size", {})
        assert sizes == ({"": 3} if role == "master" else {})
        won = found["rocketmq_replica_elections_won_total"][""]
        assert won >= 1 if role == "master" else won >= 0
    controller = metrics_of(trio.controllers[0][0])
    assert controller["rocketmq_controller_broker_sets"] == {"": 1}
    assert controller["rocketmq_controller_broker_sets_without_master"] == {"": 0}
    assert "rocketmq_controller_failovers_total" in controller


def metrics_of(program: Program) -> dict[str, dict[str, float]]:
    """Return values by metric and by the label `role`, without labels that all metrics have."""
    with urlopen(f"http://127.0.0.1:{program.port(SIDE_PORT)}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            found.setdefault(one.name, {})[one.labels.get("role", "")] = one.value
    return found


def test_controllers_without_a_leader_are_a_finding(call: Api, trio: ReplicaSet) -> None:
    found = in_sync(call)
    program, values = trio.controllers[0]
    program.kill()

    def lost() -> Any:
        (group,) = call.get("/controllers")["items"]
        return group if group["leader"] is None and group["controllers"][0]["failure"] else None

    poll(lost)
    now: Any = poll(lambda: (one := call.get(ONE)["replica_set"])["master_epoch"] is None and one)
    assert now["has_master"], "the master needs no controller"
    refused = call("post", f"{ONE}/election", {"id": slave_of(found)["id"]})
    assert (refused.status_code, "majority" in refused.json()["detail"]) == (409, True)
    rules = {"controllers-without-quorum", "controller-down"}
    listed = poll(lambda: (all_ := call.get("/findings"))["total"] and all_)["items"]
    assert rules <= {one["rule"] for one in listed}
    urls = {one["url"] for one in listed if one["object"]["kind"] == "controller"}
    assert urls == {PAGE}
    assert "no-leader" in browser(User.objects.get(username="staff")).get(PAGE).content.decode()
    program.begin(values)
    program.wait_ready()
    assert in_sync(call)["master_epoch"] >= found["master_epoch"]


def test_a_lost_master_is_seen_with_its_cause(call: Api, trio: ReplicaSet) -> None:
    """The role changes of kills, and the gap of a time without observations."""
    found = in_sync(call)
    master = found["replicas"][0]
    cluster = gateway.cluster("local")
    at_ms = now_ms()
    watching.observe("local", cluster.ask(replica_sets).value, at_ms)
    killed = next(one for one in trio.replicas if one.addr == master["addr"])
    killed.kill()

    def elected() -> Any:
        one = call("get", ONE).json().get("replica_set", {})
        head = one.get("replicas", [{}])[0]
        lost: dict[str, Any] = next(
            (r for r in one.get("replicas", []) if r["addr"] == master["addr"]), {}
        )
        return one if head.get("addr") != master["addr"] and lost.get("state") == "down" else None

    after = poll(elected)
    assert after["has_master"]
    watching.observe("local", cluster.ask(replica_sets).value, at_ms + 10_000)
    newest = call.get(f"{ONE}/role-changes")["items"][0]
    assert (newest["cause"], newest["previous_addr"]) == ("master-lost", master["addr"])
    killed.start()
    returned = in_sync(call)
    role = {one["addr"]: one["role"] for one in returned["replicas"]}
    assert role[master["addr"]] == "slave"
    later_ms = at_ms + 10_000 + watching.GAP_MS + 1
    watching.observe("local", cluster.ask(replica_sets).value, later_ms)
    assert WatchSpan.objects.filter(cluster="local").count() == 2
    assert RoleChange.objects.filter(cluster="local").count() == 2, "the same master"


def test_records_are_bounded(call: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    sets = gateway.cluster("local").ask(replica_sets).value
    monkeypatch.setattr(watching, "CHANGES_MAX", 3)
    monkeypatch.setattr(watching, "SPANS_MAX", 2)
    for number in range(5):
        RoleChange.objects.create(
            cluster="local", name=BROKER_NAME, at_ms=number, cause=Cause.LOST, addr=""
        )
        watching.observe("local", sets, number * 1_000_000 + 10)
    assert RoleChange.objects.count() <= 3
    assert WatchSpan.objects.count() == 2


def test_a_broker_alone_has_one_copy(api: Api, page: Client) -> None:
    (found,) = [one for one in api.get(SETS)["items"] if one["name"] == "broker-a"]
    assert (found["mode"], found["master_epoch"], len(found["replicas"])) == ("single", None, 1)
    assert api.get("/controllers")["items"] == []
    assert api("post", f"{SETS}/broker-a/election", {"id": 0}).status_code == 409
    assert "one copy" in page.get(PAGE).content.decode()


def test_the_last_failover_is_a_chinese_sentence() -> None:
    change = SimpleNamespace(
        cause="operator",
        cause_text="由操作员选举",
        username="ann",
        at_ms=1_000,
        previous_number=1,
        number=2,
        epoch=3,
    )
    picture = SimpleNamespace(rows=(), unwatched=(), begin_ms=0, end_ms=2_000)
    record = SimpleNamespace(watched_since_ms=1, last_failover=change)
    view = SimpleNamespace(record=record, picture=picture)
    with override("zh-hans"):
        text = render_to_string("replicas/timeline.html", {"view": view, "ranges": ()})
    sentence = strip_tags(text.partition('data-last-failover="operator">')[2].partition("</p>")[0])
    for part in ("副本 1 → 2", "任期 3", "由操作员选举", "ann"):
        assert part in sentence
    assert not set(",;()") & set(sentence)

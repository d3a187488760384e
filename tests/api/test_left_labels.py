"""Labels of topics and groups that are deleted, here or by another tool, and created anew."""

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings as console_settings
from django.test import Client
from pytest_django import Settings

from console.celery import app
from console.gateway import gateway, now_ms
from console.resources import labels, left_labels
from console.resources.models import Kind, LabelSet
from tests.api.conftest import Api
from tests.api.test_definitions import HEAD, post
from tests.api.test_feed import NOWHERE
from tests.api.test_labels import OWNED, made, put
from tests.api.traffic import Traffic, poll
from tests.support.cluster import Cluster

KINDS = pytest.mark.parametrize("kind", ["topics", "groups"])


def delete_elsewhere(traffic: Traffic, path: str) -> str:
    """Delete an object without the console; return its name."""
    _empty, kind, name = path.split("/")

    async def delete(admin: Any) -> None:
        if kind == "groups":
            await admin.delete_group(traffic.broker_addr, name)
        else:
            await admin.delete_topic_in_broker(traffic.broker_addr, name)
            await admin.delete_topic_in_namesrv(name)

    traffic.admin(delete)
    return name


def aged() -> None:
    """Let all labels be older than the age that the task respects."""
    LabelSet.objects.update(changed_ms=now_ms() - left_labels.AGE_MS_MIN)


def by_rest(api: Api, _page: Client, kind: str, name: str) -> None:
    assert api("post", f"/{kind}", {"name": name}).status_code == 201


def by_page(_api: Api, page: Client, kind: str, name: str) -> None:
    body = {"name": name, "brokers": ["broker-a"], "write_queues": 1, "read_queues": 1, "perm": 6}
    more = {"retry_max_times": 16, "retry_queue_nums": 1, "consume_enable": "on"}
    answer = page.post(f"/clusters/local/create-{kind[:-1]}/", {**body, **more})
    assert answer.status_code == 302, answer.content


def by_definitions(api: Api, _page: Client, kind: str, name: str) -> None:
    post(api, f"{HEAD}{kind}:\n  {name}: {{}}\n")


@KINDS
@pytest.mark.parametrize("create", [by_rest, by_page, by_definitions])
def test_a_new_object_does_not_inherit_labels(
    api: Api, page: Client, traffic: Traffic, kind: str, create: Callable[..., None]
) -> None:
    path = made(api, traffic, kind)
    put(api, path, OWNED)
    api.get(path)
    name = delete_elsewhere(traffic, path)
    if create is by_definitions:  # its plan is made of an answer that may be cached
        poll(lambda: api("get", path).status_code == 404)
    create(api, page, kind, name)
    assert poll(lambda: api("get", path).status_code == 200 and api.get(path))["labels"] == {}
    put(api, path, OWNED)
    assert api("post", f"/{kind}", {"name": name}).status_code == 409
    assert api.get(path)["labels"] == OWNED, "a refused creation leaves the labels"


def test_definitions_label_the_object_that_they_create(api: Api, traffic: Traffic) -> None:
    path = made(api, traffic, "topics")
    put(api, path, OWNED)
    name = delete_elsewhere(traffic, path)
    poll(lambda: api("get", path).status_code == 404)
    post(api, f"{HEAD}topics:\n  {name}: {{}}\nlabels:\n  topics:\n    {name}: {{team: new}}\n")
    assert labels.labels_of("local", Kind.TOPIC, name) == {"team": "new"}


@pytest.mark.parametrize("query", ["", "?dead_letters=true"])
def test_the_topics_of_a_deleted_group_lose_their_labels(
    api: Api, traffic: Traffic, query: str
) -> None:
    path = made(api, traffic, "groups")
    group = path.rpartition("/")[2]
    names = [f"%RETRY%{group}", f"%DLQ%{group}", f"%RETRY%{group}-2"]
    for name in names:
        labels.change("local", Kind.TOPIC, name, "staff", lambda _held: OWNED)
    assert api("delete", f"{path}{query}").status_code == 200
    left = set(LabelSet.objects.values_list("name", flat=True))
    assert left == {names[2], *([] if query else [names[1]])}


@KINDS
def test_the_task_forgets_what_another_tool_deleted(api: Api, traffic: Traffic, kind: str) -> None:
    kept, gone = made(api, traffic, kind), made(api, traffic, kind)
    for path in (kept, gone):
        put(api, path, OWNED)
    delete_elsewhere(traffic, gone)
    poll(lambda: api("get", gone).status_code == 404)
    left_labels.forget_on_schedule()
    assert LabelSet.objects.count() == 2, "fresh labels may wait for their object"
    aged()
    left_labels.forget_on_schedule()
    assert LabelSet.objects.get().name == kept.rpartition("/")[2]


@pytest.mark.django_db
def test_the_task_deletes_nothing_of_a_cluster_that_does_not_answer(
    local: Cluster, settings: Settings
) -> None:
    settings.CONSOLE_CLUSTERS = {"away": NOWHERE, **settings.CONSOLE_CLUSTERS}
    for cluster in ("away", "local", "unknown"):
        labels.change(cluster, Kind.TOPIC, "gone", "staff", lambda _held: OWNED)
    aged()
    left_labels.forget_on_schedule()
    assert set(LabelSet.objects.values_list("cluster", flat=True)) == {"away", "unknown"}


def test_the_task_waits_for_a_silent_broker(api: Api, traffic: Traffic) -> None:
    labels.change("local", Kind.TOPIC, "there", "staff", lambda _held: OWNED)
    aged()
    with traffic.dead_broker(NOWHERE):
        poll(lambda: api.get("/topics")["failures"])
        left_labels.forget_old(gateway.cluster("local"))
        assert LabelSet.objects.count() == 1


def test_the_worker_knows_the_scheduled_task() -> None:
    app.loader.import_default_modules()
    for entry in console_settings.CELERY_BEAT_SCHEDULE.values():
        assert entry["task"] in app.tasks

"""No page, resource or feed shows a name that no permission of the reader includes.

The routes come from the URL configuration. The role may read the cluster and everything that is
called `pay-…`; the topic `pay-…` is read by another group, and the group `pay-…` reads another
topic. The overview of the cluster has something to say about each of them.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.contrib.auth.models import User
from django.test import Client

from console.accounts.models import CustomRole
from console.areas.offsets.models import OffsetReset
from console.gateway import gateway, now_ms
from console.services.alarms.models import Episode
from console.services.findings import stored
from console.services.findings.finding import Finding, Report, Severity, Target
from core_broker.message.model import Message
from core_broker.remoting.bodies import (
    ConsumerData,
    HeartbeatData,
    ProducerData,
    SubscriptionData,
)
from tests.api.conftest import API, Api, browser
from tests.api.stored import give_up, store, wait_for_topic
from tests.api.test_feed import listening
from tests.api.test_roles import member, rest
from tests.api.traffic import Traffic, poll
from tests.support.cluster import Cluster
from tests.support.routes import PRESENT, Route, routes

HOME = "/clusters/local"
HIDDEN = "closed-"
#: The live tail over SSE does not end, and the client of the fixture answers no questions: tests of
#: feeds and of `names_seen` have the same checks.
NOT_ASKED = {"api-topic-tail", "groups:client", "api-group-client"}
#: Statuses of a part that did not answer, or not in time.
UNANSWERED = {502, 503, 504}
#: Routes that the role must reach, so that the test shows something.
REACHED = {
    *("topics:list", "topics:detail", "topics:consumers", "topics:configuration"),
    *("topics:delete", "groups:delete", "api-topic-impact", "api-group-impact"),
    *("groups:list", "groups:detail", "groups:queues", "groups:consumers"),
    *("api-topics", "api-topic", "api-groups", "api-group", "api-group-clients"),
    *("clients:detail", "offsets:wizard", "api-offset-resets"),
    *("deadletters:list", "deadletters:group", "api-dlq"),
    *("message:list", "message:detail", "api-message"),
    *("clusters:overview", "clusters:behind", "clusters:name-server-keys"),
    *("api-cluster", "api-name-server-keys"),
}


@dataclass(frozen=True)
class Names:
    topic: str
    group: str
    client: str
    message: str
    reset: int
    hidden: tuple[str, ...]
    hidden_reset: int


@pytest.fixture
def names(traffic: Traffic, local: Cluster, db: None) -> Iterator[Names]:
    topic, hidden_topic = (
        traffic.topic(each, write_queue_nums=4, read_queue_nums=2)
        for each in ("pay-orders", f"{HIDDEN}topic")
    )
    group, hidden_group = traffic.group("pay-billing"), traffic.group(f"{HIDDEN}group")
    for each in (topic, hidden_topic):
        wait_for_topic(traffic, each)
    sent = store(traffic, Message(topic, b"a"), Message(topic, b"b"))
    store(traffic, Message(hidden_topic, b"c"))
    for reader in (group, hidden_group):
        for each in (topic, hidden_topic):
            traffic.commit(reader, each, 0, 1)
    for each in (group, hidden_group):
        give_up(traffic, each, topic, sent[:1])
        wait_for_topic(traffic, f"%DLQ%{each}")
    client = f"pay-client@{topic}"
    subscriptions = [SubscriptionData(topic=each) for each in (topic, hidden_topic)]
    beat = HeartbeatData(
        client_id=client,
        producer_data_set=[
            ProducerData(group_name=each) for each in ("pay-producer", f"{HIDDEN}producer")
        ],
        consumer_data_set=[
            ConsumerData(group_name=each, subscription_data_set=subscriptions)
            for each in (group, hidden_group)
        ],
    )
    resets = [
        OffsetReset.objects.create(
            cluster="local", group=group, topic=each, goal="end", online=False, queues=[]
        ).pk
        for each in (topic, hidden_topic)
    ]
    key = ("ORDER_TOPIC_CONFIG", hidden_topic)
    traffic.admin(lambda admin: admin.kv_put(*key, "broker-a:4"))
    with traffic.foreign_client(beat):
        yield Names(
            topic,
            group,
            client,
            sent[0].offset_msg_id,
            resets[0],
            (hidden_topic, hidden_group, f"{HIDDEN}producer"),
            resets[1],
        )
    traffic.admin(lambda admin: admin.kv_delete(*key))


def arguments(names: Names) -> dict[str, str]:
    return {
        **PRESENT,
        "topic": names.topic,
        "group": names.group,
        "client": names.client,
        "offset_msg_id": names.message,
        "number": str(names.reset),
    }


def content(answer: Any) -> str:
    data = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return f"{data.decode(errors='replace')} {dict(answer.headers)}"


def readable(route: Route) -> bool:
    return "get" in route.methods and route.name not in NOT_ASKED


def shown(page: Client, script: Client, route: Route, names: Names) -> Iterator[tuple[int, str]]:
    """Status and content of a route, and of a list also with the parameters that lists know."""
    client = script if route.is_api or route.is_classic else page
    path = route.path(arguments(names))
    is_list = ":group>" not in route.pattern
    more = (f"?topic={names.topic}", f"?q={HIDDEN}", f"?group={names.group}") if is_list else ()
    answer = client.get(path)
    if answer.status_code in UNANSWERED and route.name in REACHED:
        answer = client.get(path)
    yield answer.status_code, content(answer)
    if answer.status_code != 403:
        for query in more:
            answer = client.get(f"{path}{query}")
            yield answer.status_code, content(answer)


@pytest.mark.timeout(900)
def test_no_route_shows_a_name_that_the_role_excludes(names: Names, traffic: Traffic) -> None:
    user = member("ann", "*:admin:pay-*", "clusters:read")
    page, script = browser(user), Api(user).client
    staff = browser(User.objects.create_superuser("boss", password="x"))
    client_page = f"{HOME}/clients/{names.client}/"
    poll(lambda: f"{HIDDEN}group" in content(staff.get(client_page)))
    poll(lambda: shows_all(staff, f"{HOME}/", names.hidden[:2]))
    reached, leaks = set(), {}
    for route in filter(readable, routes()):
        for status, text in shown(page, script, route, names):
            assert status < 500 or status in UNANSWERED, (route.name, status)
            if status == 200:
                reached.add(route.name)
            found = [name for name in names.hidden if name in text]
            if found:
                leaks[route.name] = found
    assert not leaks
    assert not REACHED - reached


def shows(client: Client, path: str, name: str) -> bool:
    return name in content(client.get(path))


def shows_all(client: Client, path: str, names: tuple[str, ...]) -> bool:
    text = content(client.get(path))
    return all(name in text for name in names)


def test_the_same_routes_show_the_names_to_a_viewer(names: Names) -> None:
    """Otherwise the test above would pass with empty pages."""
    user = User.objects.create_user("viewer", password="x")
    page, script = browser(user), Api(user).client
    hidden_topic, hidden_group, producer = names.hidden
    for path, name in (
        (f"{HOME}/topics/{names.topic}/consumers/", hidden_group),
        (f"{HOME}/groups/{names.group}/queues/", hidden_topic),
        (f"{HOME}/groups/{names.group}/consumers/", hidden_topic),
        (f"{HOME}/groups/{names.group}/offsets/", hidden_topic),
        (f"{HOME}/messages/{names.message}/", hidden_group),
        (f"{HOME}/clients/{names.client}/", producer),
        (f"{HOME}/", hidden_group),
        (f"{HOME}/behind/", hidden_group),
        (f"{HOME}/", hidden_topic),
        (f"{HOME}/name-servers/keys/", hidden_topic),
        (f"{API}/groups/{names.group}", hidden_topic),
    ):
        client = script if path.startswith(API) else page
        poll(partial(shows, client, path, name))


def test_a_further_permission_shows_further_names(names: Names) -> None:
    hidden_topic, hidden_group, _producer = names.hidden
    user = member("bob", "topics:read:pay-*", "groups:read:pay-*", f"topics:read:{hidden_topic}")
    page = browser(user)
    assert hidden_topic in content(page.get(f"{HOME}/groups/{names.group}/queues/"))
    assert hidden_group not in content(page.get(f"{HOME}/topics/{names.topic}/consumers/"))
    CustomRole.objects.update(permissions=["topics:read:pay-*", "groups:read"])
    page = browser(User.objects.get(pk=user.pk))
    assert hidden_group in content(page.get(f"{HOME}/topics/{names.topic}/consumers/"))
    assert hidden_topic in content(page.get(f"{HOME}/groups/{names.group}/queues/"))


def report(names: Names) -> None:
    """Store a finding and an alarm of unseen objects that concern the topic and the group."""
    hidden_topic, hidden_group, _producer = names.hidden
    related = (Target("topic", names.topic), Target("group", names.group))
    text = f"{hidden_group} does not read {hidden_topic}"
    target = Target("group", hidden_group)
    found = Finding("stuck", Severity.WARNING, target, text, "", related=related)
    at_ms, counts = now_ms(), dict.fromkeys(Severity, 0)
    stored.save(gateway.cluster("local"), Report(at_ms, 1, (found,), (), counts))
    for each in related:
        Episode.objects.create(
            rule_name="stuck", cluster="local", kind=each.kind, name=each.name,
            severity="warning", state="firing", begun_ms=at_ms, fired_ms=at_ms, seen_ms=at_ms,
            text={"en": text},
        )  # fmt: skip


def test_findings_and_alarms_on_a_page_need_their_permission(names: Names) -> None:
    """Their texts name other objects."""
    for resource in ("search", "findings", "alarms"):
        own = ("topics:read:pay-*", "groups:read:pay-*", f"{resource}:read")
        page = browser(member(f"gil-{resource}", *own))
        for path in (f"topics/{names.topic}/", f"groups/{names.group}/"):
            report(names)
            text = content(page.get(f"{HOME}/{path}"))
            assert ('id="object-findings"' in text) == (resource == "findings")
            assert ('id="object-alarms"' in text) == (resource == "alarms")
            assert (names.hidden[1] in text) == (resource != "search")


@pytest.mark.parametrize("more", [(), ("findings:read", "alarms:read")])
def test_the_overview_shows_findings_and_alarms_with_their_permission(
    more: tuple[str, ...], local: Cluster, db: None
) -> None:
    text = content(browser(member("hal", "clusters:read", *more)).get(f"{HOME}/"))
    assert ('id="verdict"' in text) == ('id="alarms-firing"' in text) == bool(more)


def test_a_deletion_still_counts_the_clients_of_unseen_groups(names: Names) -> None:
    api = Api(member("cat", "topics:admin:pay-*", "groups:admin:pay-*"))
    impact = poll(lambda: api.get(f"/topics/{names.topic}/impact")["online_groups"])
    assert set(impact) == {names.group, "***"}
    assert api("delete", f"/topics/{names.topic}").status_code == 409


def test_lag_and_counts_include_unseen_names(names: Names) -> None:
    hidden_topic, hidden_group, _producer = names.hidden
    every = Api(User.objects.create_user("viewer", password="x"))
    some = Api(member("ida", "topics:read:pay-*", "groups:read:pay-*"))
    whole, seen = (each.get(f"/groups/{names.group}")["progress"] for each in (every, some))
    assert whole["unseen_topics"] == 0
    assert seen == {**whole, "topics": ["***", names.topic], "unseen_topics": 1}
    assert whole["topics"] == [hidden_topic, names.topic]

    def numbers(api: Api) -> dict[str, Any]:
        [found] = api.get(f"/topics?q={names.topic}")["items"]
        return found["numbers"]

    poll(lambda: hidden_group in numbers(every)["groups"])
    assert numbers(some)["groups"] == [names.group]
    assert numbers(some)["worst_lag"] == numbers(every)["worst_lag"]
    page = browser(User.objects.get(username="ida"))
    text = content(page.get(f"{HOME}/topics/{names.topic}/consumers/"))
    assert "1 more group that your permissions do not include." in text


def test_pages_of_a_group_and_its_deletion_count_unseen_topics(names: Names) -> None:
    user = member("jay", "topics:read:pay-*", "groups:admin:pay-*")
    page, api = browser(user), Api(user)
    more = "1 more topic that your permissions do not include."
    group = f"{HOME}/groups/{names.group}"
    for path in ("/", "/queues/", "/consumers/", "/delete/"):
        poll(partial(shows, page, f"{group}{path}", more))
    impact = api.get(f"/groups/{names.group}/impact")
    assert (impact["topics"], impact["unseen_topics"]) == ([names.topic], 1)
    clients = api.get(f"/groups/{names.group}/clients")
    assert [each["topic"] for each in clients["subscriptions"]] == [names.topic]
    assert clients["unseen_topics"] == 1

    def numbers() -> dict[str, Any]:
        [found] = api.get(f"/groups?q={names.group}")["items"]
        return found["numbers"] or {}

    poll(lambda: numbers().get("topics") == [names.topic] and numbers()["unseen_topics"] == 1)
    blind = Api(member("kay", f"groups:read:{names.group}"))
    assert blind.get(f"/groups/{names.group}/impact")["unseen_topics"] == 2
    page = browser(User.objects.get(username="kay"))
    text = content(page.get(f"{group}/queues/"))
    assert "2 more topics that your permissions do not include." in text
    assert "No committed offsets" not in text


def test_the_overview_counts_unseen_topics_and_groups(names: Names) -> None:
    every = Api(User.objects.create_user("viewer", password="x"))
    user = member("lee", "clusters:read", "topics:read:pay-*", "groups:read:pay-*")

    def complete() -> dict[str, Any]:
        found: dict[str, Any] = every.get("")
        groups = {each["group"] for each in found["dead_letters"] or ()}
        known = {names.group, names.hidden[1]} <= groups
        return found if known and names.hidden[0] in found["unread_topics"] else {}

    whole, seen = poll(complete), Api(user).get("")
    assert seen["unread_topics"] == [names.topic]
    assert [each["group"] for each in seen["dead_letters"]] == [names.group]
    assert (seen["unseen_topics"], seen["unseen_dead_letter_groups"]) == (1, 1)
    assert (whole["unseen_topics"], whole["unseen_dead_letter_groups"]) == (0, 0)
    assert seen["dead_letter_count"] == whole["dead_letter_count"]
    text = content(browser(user).get(f"{HOME}/"))
    for kind in ("topic", "group"):
        assert f"1 more {kind} that your permissions do not include." in text
    keys = Api(user).get("/name-server-keys")
    assert (keys["items"], keys["unseen"]) == ([], 1)


def test_a_reset_of_an_unseen_topic_stays_unseen(names: Names) -> None:
    user = member("dan", "offsets:write:pay-*", "groups:read:pay-*")
    listed = Api(user).get(f"/groups/{names.group}/offsets/resets")["items"]
    assert [each["topic"] for each in listed] == [names.topic]
    page = browser(user)
    url = f"{HOME}/groups/{names.group}/offsets"
    assert page.get(f"{url}/{names.hidden_reset}/").status_code == 404
    assert page.get(f"{url}/{names.reset}/").status_code == 200


def test_recent_items_follow_the_present_roles(names: Names) -> None:
    hidden_topic, hidden_group, _producer = names.hidden
    user = member("eve", "search:read", "topics:read", "groups:read")
    page = browser(user)
    for path in (f"topics/{names.topic}", f"topics/{hidden_topic}", f"groups/{hidden_group}"):
        assert page.get(f"{HOME}/{path}/").status_code == 200

    def recent() -> list[str]:
        items = page.get(f"{API}/search?q=").json()["items"]
        return [each["title"] for each in items if each["kind"] == "recent"]

    assert recent() == [hidden_group, hidden_topic, names.topic]
    CustomRole.objects.update(permissions=["search:read", "topics:read:pay-*", "groups:read:pay-*"])
    assert recent() == [names.topic]
    found = json.dumps(rest(user, "get", f"{API}/search?q={HIDDEN}").json())
    assert not [name for name in names.hidden if name in found]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "path", ["overview", "jobs", "messages/tail?topic=closed-topic", "messages/tail"]
)
async def test_no_feed_opens_for_a_name_that_the_role_excludes(
    path: str, transactional_db: None, local: Cluster
) -> None:
    user = await database_sync_to_async(member)("fay", "*:admin:pay-*")
    async with await listening(user, f"/ws/clusters/local/{path}") as socket:
        assert await socket.closed() == 4403

"""Pages of clusters, topics and groups in a browser without scripts."""

import re
from html.parser import HTMLParser

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from tests.api.conftest import browser
from tests.api.traffic import Traffic, poll
from tests.support.cluster import Cluster

HOME = "/clusters/local"
NOWHERE = "127.0.0.1:1"


class Shape(HTMLParser):
    """Structure of a page: unbalanced tags, ids, headings, links."""

    VOID = frozenset({"meta", "link", "input", "br", "path", "img", "hr", "rect"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.headings = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if found.get("id"):
            self.ids.append(found["id"] or "")
        if tag == "a":
            self.links.append(found.get("href") or "")
        self.headings += tag == "h1"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if tag in self.VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def html(client: Client, path: str, status: int = 200, **headers: str) -> str:
    answer = client.get(path, headers=headers)
    assert answer.status_code == status, answer.content[:400]
    return str(answer.content.decode())


@pytest.fixture
def lively(traffic: Traffic) -> tuple[str, str]:
    """A topic with messages, and a group with lag."""
    topic, group = traffic.topic("lively", write_queue_nums=1, read_queue_nums=1), traffic.group()
    traffic.send(topic, 3)
    traffic.commit(group, topic, 0, 1)
    return topic, group


def all_pages(topic: str, group: str) -> list[str]:
    return [
        f"{HOME}/",
        f"{HOME}/behind/",
        f"{HOME}/brokers/",
        f"{HOME}/brokers/broker-a/",
        f"{HOME}/name-servers/",
        f"{HOME}/topics/",
        f"{HOME}/topics/{topic}/",
        *(f"{HOME}/topics/{topic}/{tab}/" for tab in ("messages", "consumers", "queues")),
        *(f"{HOME}/topics/{topic}/{tab}/" for tab in ("configuration", "permissions")),
        f"{HOME}/topics/{topic}/edit/",
        f"{HOME}/topics/{topic}/delete/",
        f"{HOME}/create-topic/",
        f"{HOME}/groups/",
        f"{HOME}/groups/{group}/",
        *(f"{HOME}/groups/{group}/{tab}/" for tab in ("queues", "consumers", "configuration")),
        f"{HOME}/groups/{group}/edit/",
        f"{HOME}/groups/{group}/delete/",
        f"{HOME}/create-group/",
        f"{HOME}/clients/",
        f"{HOME}/producers/",
        "/accounts/password/",
    ]


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_page_is_whole_and_leads_only_to_pages_that_exist(
    page: Client, lively: tuple[str, str], language: str
) -> None:
    topic, group = lively
    poll(lambda: page.get(f"{HOME}/topics/{topic}/").status_code == 200)
    poll(lambda: page.get(f"{HOME}/groups/{group}/").status_code == 200)
    links: set[str] = set()
    for path in all_pages(topic, group):
        text = html(page, path, **{"Accept-Language": language})
        shape = Shape(text)
        assert not shape.wrong, path
        assert not shape.open, path
        assert len(set(shape.ids)) == len(shape.ids), path
        if "<html" in text:
            assert shape.headings == 1, path
            assert f'lang="{language}"' in text
        links |= {link for link in shape.links if link.startswith("/")}
    broken = [link for link in links if page.get(link).status_code not in {200, 302}]
    assert not broken


def test_the_overview_shows_numbers_before_any_script_runs(
    page: Client, lively: tuple[str, str]
) -> None:
    _topic, group = lively
    poll(lambda: group in html(page, f"{HOME}/behind/"))
    text = html(page, f"{HOME}/")
    assert 'data-feed="/ws/clusters/local/overview"' in text
    assert "broker-a" in text
    assert "4.9.8" in text
    assert "Background jobs are off" in text


def shown(page: Client, path: str, *words: str) -> str:
    """The page, once all words are shown."""

    def look() -> str:
        text: str = page.get(path).content.decode()
        return text if all(word in text for word in words) else ""

    return poll(look)


@pytest.mark.parametrize(
    ("perm", "words"), [(2, "write only"), (4, "read only"), (6, "read + write")]
)
def test_permissions_are_shown_in_words_and_number(
    page: Client, traffic: Traffic, perm: int, words: str
) -> None:
    topic = traffic.topic("perm", perm=perm)
    text = shown(page, f"{HOME}/topics/{topic}/configuration/", ">Brokers</h2>")
    assert f"{words} <b>{perm}</b>" in text
    assert f"{words} <b>{perm}</b>" in html(page, f"{HOME}/topics/?q={topic}")


def test_lists_search_filter_and_sort_in_their_address(page: Client, traffic: Traffic) -> None:
    names = sorted(traffic.topic("sorted") for _ in range(2))
    text = shown(page, f"{HOME}/topics/?q=sorted-&ordering=-name", *names)
    assert text.index(names[1]) < text.index(names[0])
    assert 'aria-sort="descending"' in text
    assert "TBW102" not in text
    assert "TBW102" in html(page, f"{HOME}/topics/?type=system")
    assert "No topic matches" in html(page, f"{HOME}/topics/?q=no-such-name")


def test_htmx_gets_the_part_and_browsers_the_page(page: Client) -> None:
    address = f"{HOME}/topics/?q=TBW102"  # topics of other tests can fill the first page
    whole = page.get(address)
    part = page.get(address, headers={"HX-Request": "true"})
    assert b"<html" in whole.content
    assert b"<html" not in part.content
    assert b"TBW102" in part.content
    assert "HX-Request" in whole.headers["Vary"]


def test_a_topic_is_created_edited_and_deleted(page: Client, traffic: Traffic) -> None:
    name = traffic.topic("form") + "-made"
    form = {
        "name": name,
        "write_queues": "2",
        "read_queues": "2",
        "perm": "6",
        "brokers": "broker-a",
    }
    answer = page.post(f"{HOME}/create-topic/", form)
    assert answer.status_code == 302, answer.content
    assert answer.headers["Location"] == f"{HOME}/topics/{name}/"
    assert "is created" in html(page, f"{HOME}/topics/{name}/")

    edit = f"{HOME}/topics/{name}/edit/"
    etag = re.search(r'name="etag" value="([0-9a-f]+)"', html(page, edit))
    assert etag is not None
    changed = {**form, "perm": "2", "etag": etag[1]}
    preview = page.post(edit, {**changed, "preview": ""}).content.decode()
    assert "<h2>Changes</h2>" in preview
    assert "read + write <b>6</b>" in preview
    assert "write only <b>2</b>" in preview
    same = page.post(edit, {**form, "preview": ""}).content.decode()
    assert "No changes" in same

    answer = page.post(edit, {**changed, "save": ""})
    assert answer.status_code == 302, answer.content
    assert "write only <b>2</b>" in html(page, f"{HOME}/topics/{name}/")
    stale = page.post(edit, {**form, "etag": etag[1], "save": ""}, follow=True)
    assert b"Somebody changed this" in stale.content

    delete = f"{HOME}/topics/{name}/delete/"
    assert "2</b> queues on broker-a" in re.sub(r"\s+", " ", html(page, delete))
    refused = page.post(delete, {"typed_name": "something else"})
    assert refused.status_code == 422
    assert b"Nothing was deleted" in refused.content
    answer = page.post(delete, {"typed_name": name}, follow=True)
    assert b"is deleted" in answer.content
    html(page, f"{HOME}/topics/{name}/", 404)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "a b"},
        {"name": ""},
        {"write_queues": "0"},
        {"read_queues": "many"},
        {"perm": "9"},
        {"brokers": "broker-z"},
        {"brokers": ""},
    ],
)
def test_a_form_that_cannot_be_right_comes_back_with_its_error(
    page: Client, change: dict[str, str]
) -> None:
    form = {"name": "x", "write_queues": "2", "read_queues": "2", "perm": "6"}
    answer = page.post(f"{HOME}/create-topic/", {**form, "brokers": "broker-a", **change})
    assert answer.status_code == 422
    assert b"field-error" in answer.content


def test_a_name_that_is_taken_is_told_beside_the_field(page: Client, traffic: Traffic) -> None:
    form = {
        "name": traffic.topic(),
        "write_queues": "2",
        "read_queues": "2",
        "perm": "6",
        "brokers": "broker-a",
    }
    answer = page.post(f"{HOME}/create-topic/", form)
    assert answer.status_code == 409
    assert b"is already on broker-a" in answer.content


def test_a_group_is_created_edited_and_deleted(page: Client, traffic: Traffic) -> None:
    name = traffic.group("form") + "-made"
    form = {
        "name": name,
        "consume_enable": "on",
        "consume_broadcast_enable": "on",
        "notify_consumer_ids_changed_enable": "on",
        "retry_max_times": "5",
        "retry_queue_nums": "1",
        "brokers": "broker-a",
    }
    answer = page.post(f"{HOME}/create-group/", form)
    assert answer.status_code == 302, answer.content
    assert "No committed offsets" in html(page, f"{HOME}/groups/{name}/queues/")

    edit = f"{HOME}/groups/{name}/edit/"
    etag = re.search(r'name="etag" value="([0-9a-f]+)"', html(page, edit))
    assert etag is not None
    changed = {**form, "retry_max_times": "2", "etag": etag[1]}
    preview = page.post(edit, {**changed, "preview": ""}).content.decode()
    assert "<del>5</del>" in preview
    assert "<ins>2</ins>" in preview
    assert page.post(edit, {**changed, "save": ""}).status_code == 302
    stale = page.post(edit, {**form, "etag": etag[1], "save": ""}, follow=True)
    assert b"Somebody changed this" in stale.content

    delete = f"{HOME}/groups/{name}/delete/"
    assert page.post(delete, {"typed_name": ""}).status_code == 422
    assert b"is deleted" in page.post(delete, {"typed_name": name}, follow=True).content
    html(page, f"{HOME}/groups/{name}/", 404)


def test_a_group_and_its_client(page: Client, traffic: Traffic) -> None:
    topic, group = traffic.topic(), traffic.group("seen")
    traffic.send(topic, 2)
    with traffic.consumer(group, topic):
        path = f"{HOME}/groups/{group}/"
        text = shown(page, f"{path}queues/", "/clients/", topic)
        assert "/clients/" in html(page, f"{path}consumers/")
        link = re.search(rf'href="({re.escape(path)}clients/[^"]+)"', text)
        assert link is not None
        client = html(page, link[1])
        assert "PYTHON" in client
        assert "Assigned queues" in client


def test_a_reader_sees_pages_without_what_they_may_not_do(
    reader: User, local: Cluster, lively: tuple[str, str]
) -> None:
    topic, _group = lively
    client = browser(reader)
    poll(lambda: client.get(f"{HOME}/topics/{topic}/").status_code == 200)
    text = html(client, f"{HOME}/topics/{topic}/")
    assert "/edit/" not in text
    assert "/delete/" not in text
    assert "create-topic" not in html(client, f"{HOME}/topics/")


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "%00", "x" * 2_000, "%E4%B8%AD", "%ff", "..%2f..%2fx"]
)
def test_hostile_names_in_addresses_are_shown_as_text(page: Client, name: str) -> None:
    for area in ("topics", "groups", "brokers"):
        answer = page.get(f"{HOME}/{area}/{name}/")
        assert answer.status_code == 404
        assert b"<script>alert" not in answer.content


@pytest.mark.parametrize(
    "query",
    [
        "q=%00&page=-1&ordering=%27",
        "q=<script>alert(1)</script>",
        "type=%ff&page=99999999999999999999",
        "ordering[]=name&show=..%2f",
        "q=" + "x" * 4_000,
    ],
)
def test_hostile_queries_are_treated_as_not_given(page: Client, query: str) -> None:
    for path in ("topics/", "groups/", "brokers/broker-a/"):
        answer = page.get(f"{HOME}/{path}?{query}")
        assert answer.status_code == 200
        assert b"<script>alert" not in answer.content


def test_without_a_name_server_pages_tell_the_cause_and_the_setting(
    page: Client, settings: Settings
) -> None:
    settings.CONSOLE_CLUSTERS = {"local": NOWHERE}
    for path in ("/", "/topics/", "/groups/", "/brokers/", "/topics/x/", "/create-topic/"):
        text = html(page, f"{HOME}{path}", 503)
        assert f"Cannot connect to {NOWHERE}" in text
        assert "NAMESRV_ADDR" in text
        assert Shape(text).headings == 1
    part = page.get(f"{HOME}/topics/", headers={"HX-Request": "true"})
    assert part.status_code == 503
    assert b"<html" not in part.content
    assert NOWHERE in html(page, f"{HOME}/name-servers/")


def test_several_clusters_are_independent(page: Client, local: Cluster, settings: Settings) -> None:
    settings.CONSOLE_CLUSTERS = {"one": local.namesrv_addr, "two": NOWHERE}
    text = html(page, "/")
    assert "/clusters/one/" in text
    assert f"Cannot connect to {NOWHERE}" in text
    assert page.get("/clusters/one/topics/").status_code == 200
    assert page.get("/clusters/two/topics/").status_code == 503
    answer = page.get("/clusters/three/topics/")
    assert answer.status_code == 404
    assert "one, two" in answer.content.decode()


def test_one_cluster_needs_no_choice(page: Client) -> None:
    assert page.get("/").headers["Location"] == f"{HOME}/"


def test_a_dead_broker_is_named_and_the_rest_is_shown(page: Client, traffic: Traffic) -> None:
    with traffic.dead_broker(NOWHERE) as name:
        text = shown(page, f"{HOME}/brokers/", name)
        assert "One broker or name server does not answer" in text
        assert "broker-a" in text
        assert name in html(page, f"{HOME}/topics/")


def test_every_answer_carries_the_policies(page: Client) -> None:
    for path in (f"{HOME}/topics/", "/accounts/login/", "/nothing", "/livez", "/api/v1/clusters"):
        headers = page.get(path).headers
        assert headers["Content-Security-Policy"].startswith("default-src 'self';")
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_an_address_that_does_not_exist_has_a_page_of_its_own(page: Client) -> None:
    assert "This page does not exist" in html(page, "/nothing/here/", 404)

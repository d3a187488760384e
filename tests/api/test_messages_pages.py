"""Pages of stored messages in a browser without scripts."""

from urllib.parse import quote

import pytest
from django.test import Client

from core_broker.message.model import Message
from tests.api.stored import NASTY, NASTY_PROPERTIES, RAW, cursor, numbered, routed_topic, store
from tests.api.test_pages import Shape, html
from tests.api.traffic import Traffic, poll

HOME = "/clusters/local/messages/"


@pytest.fixture
def topic(traffic: Traffic) -> str:
    return routed_topic(traffic, "shown")


def html_with(page: Client, path: str, text: str) -> str:
    """The page, once the text is shown."""

    def look() -> str:
        shown = html(page, path)
        return shown if text in shown else ""

    return poll(look)


def test_without_a_topic_the_page_offers_them(page: Client, topic: str) -> None:
    shape = Shape(html_with(page, HOME, topic))
    assert (shape.wrong, shape.headings) == ([], 1)
    assert len(shape.ids) == len(set(shape.ids))
    assert f"?topic={topic}" in shape.links


def test_older_messages_are_a_link_away(page: Client, traffic: Traffic, topic: str) -> None:
    store(traffic, *numbered(topic, 60))
    first = html(page, f"{HOME}?topic={topic}")
    assert "60 messages" in first
    assert "message 59" in first
    assert "message 9<" not in first
    following = next(each for each in Shape(first).links if "cursor=" in each)
    last = html(page, HOME + following.replace("&amp;", "&"))
    assert "message 9<" in last
    assert "message 59" not in last
    assert "End of list" in last


def test_a_time_stands_in_the_address(page: Client, traffic: Traffic, topic: str) -> None:
    store(traffic, *numbered(topic, 3))
    assert "3 messages" in html(page, f"{HOME}?topic={topic}&last=5m")
    assert "3 messages" in html(page, f"{HOME}?topic={topic}&begin=2020-01-01T00:00:00")
    assert "3 messages" in html(page, f"{HOME}?topic={topic}&last=nonsense")
    assert "No messages" in html(page, f"{HOME}?topic={topic}&end=2020-01-01T00:00:00")


@pytest.mark.parametrize(
    "query",
    [
        "topic=",
        "topic=T&begin=yesterday",
        "topic=T&begin=2026-01-02&end=2026-01-01",
        f"topic={'T' * 300}",
    ],
)
def test_a_question_that_makes_no_sense_says_what_is_wrong(page: Client, query: str) -> None:
    assert "field-error" in html(page, f"{HOME}?{query}", status=400)


@pytest.mark.parametrize("broken", ["x", cursor("[]"), "%00", "é"])
def test_a_broken_cursor_shows_the_beginning(
    page: Client, traffic: Traffic, topic: str, broken: str
) -> None:
    store(traffic, *numbered(topic, 2))
    assert "2 messages" in html(page, f"{HOME}?topic={topic}&cursor={broken}")


@pytest.mark.parametrize("name", ["nosuch", NASTY, "../..", "a b", "订单"])
def test_a_topic_that_is_not_there_says_so(page: Client, name: str) -> None:
    answer = page.get(f"{HOME}?topic={quote(name)}")
    assert answer.status_code == 404
    assert not any(raw in answer.content for raw in RAW)


def test_a_single_find_leads_to_the_message(page: Client, traffic: Traffic, topic: str) -> None:
    [sent] = store(traffic, Message(topic, b"body", keys=(f"only-{topic}",)))
    answer = page.get(f"{HOME}find/?q=only-{topic}")
    assert answer.status_code == 302
    assert answer.headers["Location"] == f"{HOME}{sent.offset_msg_id}/"
    store(traffic, Message(topic, b"body", keys=(f"only-{topic}",)))
    several = html(page, f"{HOME}find/?q=only-{topic}&topic={topic}")
    assert "2 messages" in several
    assert "No message with this ID or key" in html(page, f"{HOME}find/?q=nothing&topic={topic}")
    assert page.get(f"{HOME}find/?q=").status_code == 400


def test_what_people_write_is_shown_and_never_run(
    page: Client, traffic: Traffic, topic: str
) -> None:
    message = Message(topic, NASTY.encode(), tags=NASTY, keys=(NASTY,), properties=NASTY_PROPERTIES)
    first, _second = store(traffic, message, message)
    for path in (
        f"{HOME}?topic={topic}",
        f"{HOME}{first.offset_msg_id}/",
        f"{HOME}{first.offset_msg_id}/?form={quote(NASTY)}",
        f"{HOME}find/?q={quote(NASTY)}&topic={topic}",
        f"{HOME}find/?q=nothing{quote(NASTY)}&topic={topic}",
    ):
        answer = page.get(path)
        assert answer.status_code == 200, path
        assert b"&lt;script&gt;alert" in answer.content, path
        assert not any(raw in answer.content for raw in RAW), path
        assert "unsafe-inline" not in answer.headers["Content-Security-Policy"]
        assert b" style=" not in answer.content


@pytest.mark.parametrize("text", ["0" * 32, NASTY.replace("/", ""), "x", "A" * 2000])
def test_an_id_that_names_nothing_says_what_may_have_happened(page: Client, text: str) -> None:
    answer = page.get(f"{HOME}{quote(text)}/")
    assert answer.status_code == 404
    assert b"fileReservedTime" in answer.content
    assert not any(raw in answer.content for raw in RAW)


def test_a_message_tells_who_has_consumed_it(page: Client, traffic: Traffic, topic: str) -> None:
    first, second = store(traffic, *numbered(topic, 2))
    group = traffic.group("progress")
    traffic.commit(group, topic, 0, 1)
    shown = html_with(page, f"{HOME}{first.offset_msg_id}/", group)
    assert ">consumed<" in shown
    assert ">not consumed<" in html(page, f"{HOME}{second.offset_msg_id}/")


def test_a_large_body_is_cut_and_says_so(page: Client, traffic: Traffic, topic: str) -> None:
    [sent] = store(traffic, Message(topic, bytes(range(256)) * 64))
    shown = html(page, f"{HOME}{sent.offset_msg_id}/")
    assert "Only the first 8.0 KiB of 16.0 KiB are shown" in shown
    whole = page.get(f"{HOME}{sent.offset_msg_id}/body/")
    assert len(whole.content) == 256 * 64
    assert whole.headers["Content-Disposition"].startswith("attachment")

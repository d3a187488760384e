"""Pages of dead letters as a browser without scripts sees them."""

import re
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.test import Client

from console.areas.deadletters.models import Resend
from core_broker.message.model import Message
from tests.api.conftest import browser
from tests.api.stored import NASTY, NASTY_PROPERTIES, RAW, Dead
from tests.api.test_pages import Shape, html
from tests.api.traffic import Traffic
from tests.support.cluster import Cluster

HOME = "/clusters/local/dlq/"


@pytest.fixture
def dead(traffic: Traffic) -> Dead:
    return Dead(traffic)


def boxes(page: str) -> list[str]:
    """The ids that a person can select."""
    return re.findall(r'name="id" value="([0-9A-F]+)"', page)


def test_the_way_from_the_overview_to_a_letter_and_back(page: Client, dead: Dead) -> None:
    overview = html(page, HOME)
    assert f"{HOME}{dead.group}/" in Shape(overview).links
    listed = html(page, f"{HOME}{dead.group}/")
    assert "3 dead letters" in listed
    assert "write only" in listed
    assert "Other tools cannot read these dead letters" in listed
    assert "dlqTopicPerm=6" in listed
    assert f"/clusters/local/topics/{quote('%DLQ%' + dead.group)}/" in Shape(listed).links
    [newest, *_] = boxes(listed)
    assert f"{HOME}{dead.group}/{newest}/" in Shape(listed).links
    letter = html(page, f"{HOME}{dead.group}/{newest}/")
    assert "message 2" in letter
    assert f"/clusters/local/topics/{dead.topic}/" in Shape(letter).links
    assert "after 1 failed delivery" in letter
    for each in (overview, listed, letter):
        shape = Shape(each)
        assert (shape.wrong, shape.headings) == ([], 1)
        assert len(shape.ids) == len(set(shape.ids))


def test_the_list_of_groups_is_searched_and_ordered(page: Client, dead: Dead) -> None:
    link = f"{HOME}{dead.group}/"
    for ordering in ("name", "-open", "-last_hour", "newest"):
        shape = Shape(html(page, f"{HOME}?q={dead.group[-6:]}&ordering={ordering}"))
        assert link in shape.links
        assert shape.wrong == []
    missing = html(page, f"{HOME}?q=no-such-group")
    assert link not in Shape(missing).links
    assert "No group matches" in missing


def test_the_selected_are_sent_again_and_marked(page: Client, staff: User, dead: Dead) -> None:
    first, second, _third = boxes(html(page, f"{HOME}{dead.group}/"))
    address = f"{HOME}{dead.group}/resend/"
    sent = page.post(address, {"id": [first, second], "target": "retry"}).content.decode()
    assert "2 sent, 0 failed, 0 skipped." in sent
    skipped = page.post(address, {"id": [first], "target": "retry"}).content.decode()
    assert "0 sent, 0 failed, 1 skipped." in skipped
    again = page.post(address, {"id": [first], "target": "origin", "again": "on"})
    assert "1 sent, 0 failed, 0 skipped." in again.content.decode()
    letter = html(page, f"{HOME}{dead.group}/{first}/")
    assert letter.count(f"· {staff.username}") == 2
    assert f"%RETRY%{dead.group}" in letter
    marked = re.findall(
        r'<span class="badge bg-green-lt">resent <time', html(page, f"{HOME}{dead.group}/")
    )
    assert len(marked) == 2


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"target": "retry"},
        {"id": "A", "target": "elsewhere"},
        {"id": "", "target": "retry"},
        {"id": "A" * 57, "target": "retry"},
    ],
)
def test_a_form_that_cannot_be_used_sends_nothing(
    page: Client, dead: Dead, form: dict[str, str]
) -> None:
    answer = page.post(f"{HOME}{dead.group}/resend/", form)
    assert answer.status_code == 400
    assert b"Nothing resent" in answer.content
    assert b"alert-danger" in answer.content
    assert not Resend.objects.exists()


def test_coming_back_to_the_address_of_the_form_sends_nothing(page: Client, dead: Dead) -> None:
    answer = page.get(f"{HOME}{dead.group}/resend/")
    assert (answer.status_code, answer.headers["Location"]) == (302, f"{HOME}{dead.group}/")


def test_a_reader_looks_and_cannot_send(reader: User, local: Cluster, dead: Dead) -> None:
    client = browser(reader)
    listed = html(client, f"{HOME}{dead.group}/")
    assert re.search(r"<button[^>]* disabled", listed)
    [letter, *_] = boxes(listed)
    shown = html(client, f"{HOME}{dead.group}/{letter}/")
    assert "Read-only: your role cannot resend messages." in shown
    form = {"id": letter, "target": "retry"}
    assert client.post(f"{HOME}{dead.group}/resend/", form).status_code == 403
    assert not Resend.objects.exists()


def test_a_letter_of_another_group_is_not_shown_as_ours(
    page: Client, traffic: Traffic, dead: Dead
) -> None:
    stranger = Dead(traffic, count=1)
    [letter] = boxes(html(page, f"{HOME}{stranger.group}/"))
    assert page.get(f"{HOME}{dead.group}/{letter}/").status_code == 404


def test_what_people_write_is_shown_and_never_run(page: Client, dead: Dead) -> None:
    dead.add(
        Message(dead.topic, NASTY.encode(), tags=NASTY, keys=(NASTY,), properties=NASTY_PROPERTIES)
    )
    listed = page.get(f"{HOME}{dead.group}/")
    [letter, *_] = boxes(listed.content.decode())
    sent = page.post(f"{HOME}{dead.group}/resend/", {"id": [letter, NASTY[:40]], "target": "retry"})
    for answer in (listed, page.get(f"{HOME}{dead.group}/{letter}/"), sent):
        assert answer.status_code == 200
        assert not any(raw in answer.content for raw in RAW)
        assert b" style=" not in answer.content
    assert b"&lt;SCRIPT&gt;" in sent.content


@pytest.mark.parametrize(
    "group", ["nobody", NASTY.replace("/", ""), "%DLQ%x", "a b", "订单", "..;"]
)
def test_a_group_without_dead_letters_says_so(page: Client, group: str) -> None:
    answer = page.get(f"{HOME}{quote(group)}/")
    assert answer.status_code == 200
    assert b"The group has no dead letters" in answer.content
    assert not any(raw in answer.content for raw in RAW)
    assert page.get(f"{HOME}{quote(group)}/{'0' * 32}/").status_code == 404

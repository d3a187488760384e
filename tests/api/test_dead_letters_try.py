"""Direct delivery of a dead letter: result of the listener and ledger row."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from console.areas.deadletters.models import Resend
from console.audit.models import AuditRow
from core_broker.message.model import MessageExt
from tests.api.conftest import Api
from tests.api.stored import Dead, ids
from tests.api.test_pages import Shape, html
from tests.api.traffic import Traffic, poll

REASON = "<b>the card was reported lost</b>"


@pytest.fixture
def dead(traffic: Traffic) -> Dead:
    return Dead(traffic)


def letter_of(api: Api, dead: Dead) -> str:
    return ids(api.get(f"/dlq/{dead.group}/messages"))[0]


def online(api: Api, dead: Dead) -> bool:
    return api.get(f"/dlq/{dead.group}")["clients"] == 1


def refuse(_message: MessageExt) -> bool:
    raise ValueError(REASON)


def test_the_listeners_own_words_are_shown(
    api: Api, page: Client, traffic: Traffic, dead: Dead
) -> None:
    letter = letter_of(api, dead)
    with traffic.consumer(dead.group, dead.topic, accepts=refuse):
        poll(lambda: online(api, dead))
        result = api("post", f"/dlq/{dead.group}/messages/{letter}/try").json()
        assert (result["verdict"], result["remark"]) == ("exception", f"ValueError: {REASON}")
        address = f"/clusters/local/dlq/{dead.group}/{letter}/"
        assert "Direct delivery" in html(page, address)
        shown = page.post(f"{address}try/").content.decode()
    assert "Consumer exception." in shown
    assert "&lt;b&gt;the card was reported lost" in shown
    assert Shape(shown).wrong == []
    assert [row.result for row in Resend.objects.all()] == ["failed", "failed"]
    assert api.get(f"/dlq/{dead.group}")["dealt_with"] == 0
    row = AuditRow.objects.filter(action="deadletter.try")[0]
    assert (row.result, REASON in row.reason) == ("failed", True)


def test_a_listener_that_takes_it_has_dealt_with_it(api: Api, traffic: Traffic, dead: Dead) -> None:
    letter = letter_of(api, dead)
    with traffic.consumer(dead.group, dead.topic):
        poll(lambda: online(api, dead))
        assert (
            api("post", f"/dlq/{dead.group}/messages/{letter}/try").json()["verdict"] == "success"
        )
    assert api("post", f"/dlq/{dead.group}/resend", {"ids": [letter]}).json()["skipped"] == 1


def test_nobody_there_and_nothing_there(api: Api, page: Client, dead: Dead, reader: User) -> None:
    letter = letter_of(api, dead)
    path = f"/dlq/{dead.group}/messages"
    assert api("post", f"{path}/{letter}/try").status_code == 409
    for wrong in ("0" * 32, "nonsense", "%3Cscript%3E"):
        assert api("post", f"{path}/{wrong}/try").status_code == 404
    assert Api(reader)("post", f"{path}/{letter}/try").status_code == 403
    assert page.get(f"/clusters/local/dlq/{dead.group}/{letter}/try/").status_code == 302
    assert not Resend.objects.exists()

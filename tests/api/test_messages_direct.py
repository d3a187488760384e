"""Direct delivery of any message to a chosen group and client."""

from urllib.parse import quote as quoted

from django.test import Client

from console.areas.deadletters.models import Resend
from console.audit.models import AuditRow
from core_broker.message.model import Message, MessageExt
from tests.api.conftest import Api
from tests.api.stored import give_up, routed_topic, store, wait_for_topic
from tests.api.test_masking import BODY, CARD, rule
from tests.api.test_pages import Shape, html
from tests.api.test_roles import member
from tests.api.traffic import Traffic, poll

REASON = "<b>no such card</b>"


def refuse(_message: MessageExt) -> bool:
    raise ValueError(REASON)


def test_a_consumer_gets_a_chosen_message(api: Api, page: Client, traffic: Traffic) -> None:
    topic, group = routed_topic(traffic, "orders"), traffic.group("billing")
    [sent] = store(traffic, Message(topic, b"hello"))
    path = f"/messages/{sent.offset_msg_id}/delivery"
    assert api("post", path, {"group": group}).status_code == 409
    with traffic.consumer(group, topic, accepts=refuse):
        client = poll(lambda: api.get(f"/groups/{group}/clients")["clients"])[0]["client_id"]
        result = api("post", path, {"group": group, "client": client}).json()
        assert (result["verdict"], result["client"]) == ("exception", client)
        assert REASON in result["remark"]
        other = api("post", path, {"group": group, "client": "elsewhere@1"})
        assert other.status_code == 409
        assert "elsewhere@1" in other.json()["detail"]
        given = {"offset_msg_id": sent.offset_msg_id, "group": group, "client": client}
        shown = page.post("/clusters/local/messages/deliver/", given).content.decode()
        assert "&lt;b&gt;no such card" in shown
        assert Shape(shown).wrong == []
        assert "Direct delivery" in html(page, f"/clusters/local/messages/{sent.offset_msg_id}/")
        assert "/messages/deliver/" in html(page, f"/clusters/local/clients/{quoted(client)}/")
        blind = Api(member("writer", "messages:write"))
        assert blind("post", path, {"group": group}).status_code == 403
    rows = AuditRow.objects.filter(action="message.deliver", target=group)
    assert [row.result for row in rows if REASON in row.reason] == ["failed", "failed"]
    unknown = api("post", f"/messages/{'0' * 32}/delivery", {"group": group})
    assert unknown.status_code == 404


def test_a_form_without_values_is_shown_again(page: Client, api: Api) -> None:
    assert page.post("/clusters/local/messages/deliver/", {}).status_code == 422
    assert page.get("/clusters/local/messages/deliver/").status_code == 302


def quote(message: MessageExt) -> bool:
    raise ValueError(f"no such card: {message.body.decode()}")


def test_exceptions_of_listeners_do_not_quote_masked_messages(api: Api, traffic: Traffic) -> None:
    topic, group = routed_topic(traffic, "cards"), traffic.group("teller")
    [sent] = store(traffic, Message(topic, BODY))
    give_up(traffic, group, topic, store(traffic, Message(topic, BODY)))
    wait_for_topic(traffic, f"%DLQ%{group}")
    rule("json", "$..card", topic)
    letter = api.get(f"/dlq/{group}/messages")["items"][0]["offset_msg_id"]
    deliver = f"/messages/{sent.offset_msg_id}/delivery"
    retry = f"/dlq/{group}/messages/{letter}/try"
    blind = Api(member("blind", "messages:write", "groups:write", "deadletters:write"))
    with traffic.consumer(group, topic, accepts=quote):
        poll(lambda: api.get(f"/groups/{group}/clients")["clients"])

        def remarks(reader: Api) -> list[str]:
            answers = [reader("post", deliver, {"group": group}), reader("post", retry)]
            return [answer.json()["remark"] for answer in answers]

        assert remarks(blind) == ["***", "***"]
        assert all(CARD in remark for remark in remarks(api))
    rows = AuditRow.objects.filter(action__in=["message.deliver", "deadletter.try"], target=group)
    assert [row.reason for row in rows] == ["***"] * 4
    assert [row.reason for row in Resend.objects.filter(group=group)] == ["***"] * 2

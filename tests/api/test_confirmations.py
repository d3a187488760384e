"""Acts that cannot be undone have a second step, which names the object and the consequences."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from knox.models import AuthToken

from console.accounts.changes import issue_token
from console.accounts.models import CustomRole
from console.frame.access import Role
from console.gateway.messages.schemas.decoder import BodyRule as Rule
from console.gateway.messages.schemas.decoder import Decoder, Format
from console.gateway.messages.schemas.framing import Framing
from console.services.alarms.models import AlarmRule, Receiver, Silence
from console.services.schemas import deletion
from console.services.schemas.models import BodyRule, BodySchema
from console.services.search.models import SavedView
from tests.api.conftest import Api, browser
from tests.api.stored import routed_topic
from tests.api.test_body_schemas import ORDER, upload
from tests.api.test_pages import html
from tests.api.traffic import Traffic, poll
from tests.support.cluster import Cluster

HOME = "/clusters/local"
USERS = "/accounts/users/"


def asked(page: Client, url: str, *parts: str) -> str:
    """Open the first step; return the text of the page, which has the parts."""
    answer: Any = page.get(url)
    assert answer.status_code == 200, answer.content
    text: str = answer.content.decode()
    assert 'id="confirmation"' in text
    for part in parts:
        assert part in text, part
    return text


def press(page: Client, url: str) -> None:
    """Open the first step, and press the button of the second one."""
    answer: Any = page.get(url)
    confirmation = answer.context["confirmation"]
    path = url.partition("?")[0]
    done = page.post(path, {confirmation.name: confirmation.value})
    assert done.status_code in (200, 302), done.content


def test_the_deletion_of_a_body_rule_names_the_topics_that_lose_it(
    api: Api, page: Client, reader: User, traffic: Traffic
) -> None:
    topic = routed_topic(traffic, "orders")
    other = routed_topic(traffic, "orders-eu")
    upload(api)
    for pattern in (topic, "orders-eu*", "order*"):
        made = api("post", "/body-rules", {"topic": pattern, **ORDER})
        assert made.status_code == 201
    numbers = {rule.topic: rule.pk for rule in BodyRule.objects.all()}
    rules = f"{HOME}/body-schemas/rules"

    def first_step(pattern: str) -> str:
        return f"{rules}/{numbers[pattern]}/?ask=delete"

    assert 'href="?ask=delete"' in html(page, f"{rules}/{numbers[topic]}/")
    poll(lambda: other in html(page, first_step("orders-eu*")))
    asked(page, first_step(topic), f"Delete the rule “{topic}”?", "rule “order*” afterwards")
    asked(page, first_step("order*"), "None of the topics that you may read has this rule.")
    press(page, first_step("order*"))
    text = asked(page, first_step("orders-eu*"), "no longer decoded in: ", other)
    assert f"decoded in: {topic}" not in text
    assert BodyRule.objects.count() == 2, "a look deletes nothing"
    schema = f"{HOME}/body-schemas/schema/shop/?ask=delete"
    assert 'id="confirmation"' not in html(page, schema), "rules use the schema"
    for pattern in (topic, "orders-eu*"):
        press(page, first_step(pattern))
    assert not BodyRule.objects.exists()
    assert 'id="confirmation"' not in html(browser(reader), schema)
    asked(page, schema, "Delete the schema “shop”?")
    press(page, schema)
    assert not BodySchema.objects.exists()


def test_many_topics_are_counted() -> None:
    rules = (Rule("a*", Format.AVRO, "", Framing.RAW, "", None),)
    topics = [f"a{number}" for number in range(deletion.TOPICS_SHOWN_MAX + 2)]
    [line] = deletion.consequences("a*", Decoder(rules), topics)
    assert line.endswith("a9 and 2 more topics")
    [line] = deletion.consequences("a*", Decoder(rules), topics[:-1])
    assert line.endswith("a9 and 1 more topic")
    assert "unknown" in deletion.consequences("a*", Decoder(rules), None)[0]


def test_tokens(staff: User, operator: User) -> None:
    own, theirs = (issue_token(each, "deploy", Role.VIEWER, 1)[0] for each in (staff, operator))
    page = browser(staff)
    for token, url in (
        (own.token, "/accounts/tokens/"),
        (theirs.token, f"{USERS}{operator.pk}/"),
    ):
        ask = f"?ask=revoke&token={token.token_key}"
        assert ask.replace("&", "&amp;") in html(page, url)
        asked(page, f"{url}{ask}", "Revoke the token “deploy”?")
        assert AuthToken.objects.filter(pk=token.pk).exists()
        press(page, f"{url}{ask}")
        assert not AuthToken.objects.filter(pk=token.pk).exists()
        for absent in (token.token_key, "", "\x00", "x" * 10_000):
            answer = page.get(url, {"ask": "revoke", "token": absent})
            assert answer.status_code == 404, absent[:20]


def test_accounts(staff: User, operator: User) -> None:
    page, url = browser(staff), f"{USERS}{operator.pk}/"
    asked(page, f"{url}?ask=password", "Reset the password of “operator”?")
    asked(page, f"{url}?ask=second-factor", "Reset the second factor of “operator”?")
    asked(page, f"{url}?ask=off", "Disable the account “operator”?", "denies all tokens")
    assert User.objects.get(pk=operator.pk).is_active
    press(page, f"{url}?ask=off")
    assert not User.objects.get(pk=operator.pk).is_active
    before = User.objects.get(pk=operator.pk).password
    press(page, f"{url}?ask=password")
    assert User.objects.get(pk=operator.pk).password != before
    assert 'href="?ask=delete"' not in html(page, f"{USERS}{staff.pk}/")
    asked(page, f"{url}?ask=delete", "Delete the account “operator”?", "cannot be restored")
    assert 'id="confirmation"' not in html(page, f"{url}?ask=nothing")
    press(page, f"{url}?ask=delete")
    assert not User.objects.filter(pk=operator.pk).exists()


def test_roles(staff: User, reader: User) -> None:
    page, url = browser(staff), "/accounts/roles/one/payments/"
    role = CustomRole.objects.create(name="payments", permissions=["topics:read"])
    asked(page, f"{url}?ask=delete", "Delete the role “payments”?", "No user has this role.")
    reader.profile.roles.add(role)
    asked(page, f"{url}?ask=delete", "Users with this role: reader")
    press(page, f"{url}?ask=delete")
    assert not CustomRole.objects.exists()


def test_views_silences_rules_and_receivers(page: Client, staff: User, local: Cluster) -> None:
    view = SavedView.objects.create(
        owner=staff, cluster="local", name="ours", address="clusters/local/", is_shared=True
    )
    saved = f"{HOME}/saved-views/?ask=remove&view={view.pk}"
    asked(page, saved, "Remove the view “ours”?", "The team loses the view.")
    press(page, saved)
    assert not SavedView.objects.exists()
    for absent in ("", "x", "9" * 5_000, "٣"):
        answer = page.get(f"{HOME}/saved-views/", {"ask": "remove", "view": absent})
        assert answer.status_code == 404
        assert page.post(f"{HOME}/saved-views/", {"remove": absent}).status_code == 404
    silence = Silence.objects.create(
        cluster="local", reason="moving", begin_ms=0, until_ms=2**42, created_by="staff"
    )
    quiet = f"{HOME}/alarms/silences/?ask=end&silence={silence.pk}"
    asked(page, quiet, "End the silence “moving” now?")
    press(page, quiet)
    silence.refresh_from_db()
    assert silence.until_ms < 2**42
    rule = AlarmRule.objects.create(name="lag", source="metric", cluster="local", changed_ms=1)
    receiver = Receiver.objects.create(name="hook", kind="webhook", changed_ms=1)
    for url, name in (
        (f"{HOME}/alarms/rules/{rule.pk}/", "rule “lag”"),
        (f"{HOME}/alarms/receivers/{receiver.pk}/", "receiver “hook”"),
    ):
        answer = page.post(url, {"remove": ""})
        assert f"Delete the {name}?" in answer.content.decode()
        assert answer.context["confirmation"].name == "removed"


@pytest.mark.parametrize("path", ["saved-views", "alarms/silences", "body-schemas"])
def test_a_page_without_a_question_has_no_confirmation(page: Client, path: str) -> None:
    assert 'id="confirmation"' not in html(page, f"{HOME}/{path}/")

"""Results of notices: stored as a code with values, shown in the reader's language."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from console.gateway import now_ms
from console.services.alarms import dispatch, receivers
from console.services.alarms.models import AlarmRule, Delivery, Episode, Notified, Receiver
from console.services.alarms.results import SENTENCES, Result, text_of
from tests.api.conftest import Api
from tests.support.webhooks import Hook, webhook

pytestmark = [pytest.mark.must_beat(12), pytest.mark.usefixtures("default_rules")]
HOME = "/clusters/local/alarms"


@pytest.fixture
def hook(settings: Settings) -> Iterator[Hook]:
    settings.ALARM_NETWORKS = ("127.0.0.0/8",)
    with webhook() as found:
        yield found


def receiver(**target: Any) -> Receiver:
    of: dict[str, Any] = {"kind": "webhook", "url": None, "recipients": ""}
    more: dict[str, Any] = {"enabled": True, "all_rules": True, "secret": "", "language": "en"}
    return receivers.save(None, receivers.Draft(name="duty", **(of | more | target)), "tester")


def delivery(to: Receiver | None, **values: Any) -> Delivery:
    """A claimed delivery of a firing episode, in its first attempt."""
    rule, at_ms = AlarmRule.objects.get(default_key="critical"), now_ms()
    of: dict[str, Any] = {"rule": rule, "rule_name": rule.name, "cluster": "local"}
    shared: dict[str, Any] = {"severity": "critical", "created_ms": at_ms, "due_ms": at_ms}
    new = {"receiver": to, "receiver_name": "duty", "event": "firing", "attempts": 1}
    made = Delivery.objects.create(**(of | shared | new | values))
    times = dict.fromkeys(("begun_ms", "fired_ms", "seen_ms"), at_ms)
    episode = Episode.objects.create(
        **of,
        **times,
        kind="group",
        name=f"g-{made.pk}",
        severity="critical",
        state="firing",
        text={},
    )
    Notified.objects.create(delivery=made, episode=episode, receiver=to, event="firing")
    return made


def shown(page: Client, language: str) -> str:
    wanted = {"Accept-Language": language}
    return page.get(f"{HOME}/deliveries/", headers=wanted).content.decode()


def test_an_answer_and_an_error_are_in_the_readers_language(
    page: Client, api: Api, hook: Hook
) -> None:
    made = delivery(receiver(url=hook.url))
    dispatch.deliver(made.pk)
    assert "status 200" in shown(page, "en")
    assert "状态 200" in shown(page, "zh-hans")
    made = delivery(Receiver.objects.get())
    hook.answers.append(302)
    dispatch.deliver(made.pk)
    assert "status 302: redirects are not followed" in shown(page, "en")
    chinese = shown(page, "zh-hans")
    assert "不跟随重定向" in chinese
    assert "redirects" not in chinese
    episode = Episode.objects.order_by("pk").last()
    assert episode is not None
    [sent] = api.get(f"/alarms/{episode.pk}")["deliveries"]
    assert sent["result"] == "status 302: redirects are not followed"
    assert sent["result_code"] == "redirect"


@pytest.mark.parametrize("state", ["off", "deleted", "absent"])
def test_a_receiver_that_is_gone_is_named_in_the_readers_language(
    page: Client, hook: Hook, state: str
) -> None:
    to = receiver(url=hook.url, enabled=state != "off")
    made = delivery(None if state == "absent" else to)
    if state == "deleted":
        receivers.delete(to)
    else:
        dispatch.deliver(made.pk)
    assert Delivery.objects.get().state == "failed"
    said = {"deleted": "接收方已删除"}.get(state, "接收方已停用或删除")
    assert said in shown(page, "zh-hans")
    assert "the receiver" in shown(page, "en")


def test_the_test_button_answers_in_the_readers_language(page: Client, settings: Settings) -> None:
    settings.EMAIL_HOST = ""
    number = receiver(kind="mail", recipients="a@example.org").pk
    path, press = f"{HOME}/receivers/{number}/", {"test": ""}
    chinese = page.post(path, press, headers={"Accept-Language": "zh-hans"}).content.decode()
    assert "请设置 CONSOLE_SMTP_HOST" in chinese


def test_a_sentence_of_an_older_version_is_shown_as_it_is(page: Client, api: Api) -> None:
    delivery(None, state="failed", error="status 503: busy & <b>")
    for language in ("en", "zh-hans"):
        assert "status 503: busy &amp; &lt;b&gt;" in shown(page, language)
    [sent] = api.get(f"/alarms/{Episode.objects.get().pk}")["deliveries"]
    assert (sent["result"], sent["result_code"]) == ("status 503: busy & <b>", "")


@pytest.mark.parametrize("code", SENTENCES)
def test_each_sentence_has_its_values(code: str) -> None:
    names = ("status", "host", "reason", "text", "address", "errcode")
    values = dict.fromkeys(names, "100 %(x)s")
    assert text_of(Result(code, values).stored) not in ("", code)


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        ({}, ""),
        ({"code": "of-a-later-version", "values": {}}, "of-a-later-version"),
        ({"code": "silent", "values": {}}, "silent"),
    ],
)
def test_a_result_that_cannot_be_told_is_its_code(stored: dict[str, Any], text: str) -> None:
    assert text_of(stored) == text

"""The console's own rules have titles in the reader's language, on pages and in notices."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from console.gateway import now_ms
from console.services.alarms import dispatch, receivers, rules
from console.services.alarms.models import AlarmRule, Delivery, Episode
from console.services.alarms.notices import notify_firing
from tests.support.webhooks import Hook, webhook

pytestmark = [pytest.mark.must_beat(12), pytest.mark.usefixtures("default_rules")]
HOME = "/clusters/local/alarms"
ENGLISH, CHINESE = "Critical findings", "严重的诊断结果"


@pytest.fixture
def hook(settings: Settings) -> Iterator[Hook]:
    settings.ALARM_NETWORKS = ("127.0.0.0/8",)
    with webhook() as found:
        yield found


@pytest.fixture
def rule(db: None) -> AlarmRule:
    return AlarmRule.objects.get(default_key="critical")


def firing(rule: AlarmRule, name: str = "orders-1") -> Episode:
    at_ms = now_ms()
    return Episode.objects.create(
        rule=rule, rule_name=rule.name, cluster="local", kind="group", name=name,
        severity="critical", state="firing", begun_ms=at_ms, fired_ms=at_ms, seen_ms=at_ms,
        text={"en": "no client", "zh-hans": "没有客户端"},
    )  # fmt: skip


def notify(hook: Hook, rule: AlarmRule, language: str) -> dict[str, Any]:
    """Send the firing notice of a new episode; return the body at the webhook."""
    more: dict[str, Any] = {"enabled": True, "all_rules": True, "recipients": "", "secret": ""}
    draft = receivers.Draft(name=language, kind="webhook", language=language, url=hook.url, **more)
    receiver = receivers.save(None, draft, "tester")
    episode = firing(rule, f"orders-{language}")
    notify_firing(rule, "local", episode.fired_ms or 0)
    dispatch.deliver(Delivery.objects.get(receiver=receiver).pk)
    receivers.delete(receiver)
    return hook.notices[-1]


def shown(page: Client, path: str, language: str = "zh-hans") -> str:
    return page.get(f"{HOME}/{path}", headers={"Accept-Language": language}).content.decode()


def test_notices_have_the_title_in_the_language_of_the_receiver(
    rule: AlarmRule, hook: Hook
) -> None:
    assert ENGLISH in notify(hook, rule, "en")["title"]
    chinese = notify(hook, rule, "zh-hans")
    assert CHINESE in chinese["title"]
    assert ENGLISH not in chinese["title"]
    assert chinese["rule"] == ENGLISH, "programs compare the name"


def test_a_renamed_rule_has_its_own_name_everywhere(
    page: Client, rule: AlarmRule, hook: Hook
) -> None:
    rules.save(rule, {**rules.state_of(rule), "name": "On fire"}, [], "tester")
    rule.refresh_from_db()
    assert "On fire" in notify(hook, rule, "zh-hans")["title"]
    for path in ("", "rules/", "deliveries/"):
        assert "On fire" in shown(page, path), path
        # The summary of the rule has the same words within a sentence.
        assert f">{CHINESE}<" not in shown(page, path), path


def test_the_name_of_a_user_is_never_translated(page: Client, rule: AlarmRule) -> None:
    rules.save(rule, {**rules.state_of(rule), "name": "On fire"}, [], "tester")
    own = rules.save(None, {**rules.state_of(rule), "name": ENGLISH}, [], "tester")
    firing(own)
    assert ENGLISH in shown(page, "")
    assert CHINESE not in shown(page, "")


@pytest.mark.parametrize("is_deleted", [False, True])
def test_pages_show_the_title(
    page: Client, staff: User, rule: AlarmRule, hook: Hook, is_deleted: bool
) -> None:
    episode = firing(rule)
    notify(hook, rule, "zh-hans")
    if is_deleted:
        rules.delete(rule)
    lists = ["?state=resolved"] if is_deleted else ["", "rules/", "silences/"]
    for path in [*lists, "deliveries/", f"{episode.pk}/"]:
        text = shown(page, path)
        assert CHINESE in text, path
        assert ENGLISH not in text, path
        assert ENGLISH in shown(page, path, "en"), path


@pytest.mark.parametrize("words", [ENGLISH, CHINESE])
def test_a_search_finds_name_and_title(page: Client, rule: AlarmRule, words: str) -> None:
    episode = firing(rule)
    assert episode.name in shown(page, f"?q={words}")
    assert f'href="{HOME}/{episode.pk}/"' not in shown(page, "?q=nothing")


def test_a_form_with_the_shown_title_renames_nothing(page: Client, rule: AlarmRule) -> None:
    assert f'value="{CHINESE}"' in shown(page, f"rules/{rule.pk}/")
    values: dict[str, Any] = {
        "source": "finding",
        "finding_severity": "critical",
        "severity": "critical",
        "clear_for_s": 60,
        "all_clusters": "on",
        "enabled": "on",
    }
    for name, for_s in ((CHINESE, 10), (ENGLISH, 20)):
        body = {**values, "name": name, "for_s": for_s}
        assert page.post(f"{HOME}/rules/{rule.pk}/", body).status_code == 302
        rule.refresh_from_db()
        assert (rule.name, rule.default_key, rule.for_s) == (ENGLISH, "critical", for_s)
    page.post(f"{HOME}/rules/{rule.pk}/", {**values, "name": "On fire", "for_s": 30})
    rule.refresh_from_db()
    assert (rule.name, rule.default_key) == ("On fire", "")

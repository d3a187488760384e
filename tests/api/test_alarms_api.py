"""REST resources and pages of alarms: rules, receivers with secrets, silences, acknowledgement."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from pytest_django import Settings

from console.audit.models import AuditRow
from console.gateway import now_ms
from console.metrics import REGISTRY
from console.services.alarms import rules
from console.services.alarms.models import AlarmRule, Delivery, Episode, Notified, Receiver
from console.services.alarms.serializers import AlarmSerializer
from tests.api.conftest import Api, browser
from tests.api.test_roles import member
from tests.support.cluster import Cluster
from tests.support.webhooks import Hook, webhook

pytestmark = [pytest.mark.must_beat(12), pytest.mark.usefixtures("default_rules")]
HOME = "/clusters/local/alarms"
SECRET = "secret-of-the-hook-4711"
RULE = {
    "name": "lag of orders",
    "source": "metric",
    "scope": "group",
    "metric": "lag",
    "threshold": 10,
    "severity": "critical",
    "pattern": "orders-*",
}


@pytest.fixture
def hook(settings: Settings) -> Iterator[Hook]:
    settings.ALARM_NETWORKS = ("127.0.0.0/8",)
    with webhook() as found:
        yield found


def receiver(hook: Hook, **more: Any) -> dict[str, Any]:
    return {"name": "hook", "kind": "webhook", "url": hook.url, "secret": SECRET, **more}


def firing(name: str = "orders-1") -> Episode:
    rule = AlarmRule.objects.get(default_key="critical")
    at_ms = now_ms()
    return Episode.objects.create(
        rule=rule, rule_name=rule.name, cluster="local", kind="group", name=name,
        severity="critical", state="firing", begun_ms=at_ms, fired_ms=at_ms, seen_ms=at_ms,
        text={"en": "no client", "zh-hans": "没有客户端"},
    )  # fmt: skip


def test_a_new_console_has_rules(api: Api) -> None:
    items = api.get("/alarm-rules")["items"]
    assert {each["name"]: each["enabled"] for each in items} == {
        "Critical findings": True,
        "Warnings of the findings": True,
        "High lag of a group": True,
        "Disk of a broker is full": True,
        "Produce rate dropped": False,
    }
    assert all(each["all_clusters"] for each in items)


def test_a_rule_is_created_changed_and_deleted(api: Api) -> None:
    made = api("post", "/alarm-rules", RULE)
    assert made.status_code == 201, made.content
    path = f"/alarm-rules/{made.json()['id']}"
    assert made.headers["Location"].endswith(path)
    assert api("post", "/alarm-rules", RULE).status_code == 400, "the name is taken"
    changed = api("patch", path, {"threshold": 20, "clear_threshold": 5})
    assert changed.status_code == 200, changed.content
    body = api.get(path)
    assert (body["threshold"], body["clear_threshold"], body["pattern"]) == (20, 5, "orders-*")
    assert api("delete", path).status_code == 204
    assert api("get", path).status_code == 404
    actions = AuditRow.objects.filter(action__startswith="alarm-rule.").order_by("pk")
    assert [(each.action, each.result) for each in actions] == [
        ("alarm-rule.create", "done"),
        ("alarm-rule.create", "failed"),
        ("alarm-rule.update", "done"),
        ("alarm-rule.delete", "done"),
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"metric": "send_p99_ms"},
        {"metric": ""},
        {"source": "finding", "finding_rule": "none"},
        {"threshold": "NaN"},
        {"threshold": 1e300},
        {"clear_threshold": 11},
        {"comparison": "below", "clear_threshold": 9},
        {"window_s": 59},
        {"for_s": -1},
        {"for_s": 86_401},
        {"severity": "fatal"},
        {"receivers": [987_654]},
        {"name": ""},
        {"name": "n" * 121},
        {"pattern": "x" * 513},
        {"unknown": 1},
    ],
    ids=str,
)
def test_hostile_rules_are_refused(api: Api, change: dict[str, Any]) -> None:
    before = AlarmRule.objects.count()
    assert api("post", "/alarm-rules", {**RULE, **change}).status_code == 400
    assert api("post", "/alarm-rules:preview", {**RULE, **change}).status_code == 400
    assert AlarmRule.objects.count() == before


def test_the_number_of_rules_is_bounded(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "RULES_MAX", AlarmRule.objects.count())
    assert api("post", "/alarm-rules", RULE).status_code == 409


def test_a_preview_names_the_findings_of_now(api: Api, page: Client) -> None:
    api.get("/findings")  # evaluates
    body = {"name": "all", "source": "finding", "finding_severity": "advice", "severity": "advice"}
    answer = api("post", "/alarm-rules:preview", body)
    assert answer.status_code == 200, answer.content
    seen = answer.json()
    assert seen["has_data"]
    assert seen["total"] == api.get("/findings")["total"]
    form = {**body, "for_s": 1, "clear_for_s": 1, "preview": "1"}
    assert "Preview" in page.post(f"{HOME}/rules/create/", form).content.decode()
    assert not AlarmRule.objects.filter(name="all").exists()


def test_secrets_of_receivers_are_never_returned(api: Api, page: Client, hook: Hook) -> None:
    made = api("post", "/alarm-receivers", receiver(hook))
    assert made.status_code == 201, made.content
    number = made.json()["id"]
    answers = [
        made.content,
        api("get", "/alarm-receivers").content,
        api("get", f"/alarm-receivers/{number}").content,
        api("patch", f"/alarm-receivers/{number}", {"enabled": False}).content,
        page.get(f"{HOME}/receivers/").content,
        page.get(f"{HOME}/receivers/{number}/").content,
        json.dumps([str(row) for row in AuditRow.objects.values()]).encode(),
    ]
    for answer in answers:
        assert SECRET.encode() not in answer
        assert b"url-secret-7" not in answer
    assert made.json()["host"] == hook.url.partition("/hook")[0]
    assert made.json()["has_secret"]


def test_another_host_needs_the_secret_again(api: Api, hook: Hook) -> None:
    number = api("post", "/alarm-receivers", receiver(hook)).json()["id"]
    path = f"/alarm-receivers/{number}"
    other = {"url": "https://collector.example.net/hook"}
    assert api("patch", path, other).status_code == 400
    assert api("patch", path, {**other, "secret": "new"}).status_code == 200


@pytest.mark.parametrize(
    "change",
    [
        {"url": "ftp://h/x"},
        {"url": "http://"},
        {"url": "http://user:password@h/"},
        {"url": "http://h/\r\nX: y"},
        {"url": "http://[::1"},
        {"url": None},
        {"kind": "pager"},
        {"kind": "mail", "recipients": ""},
        {"kind": "mail", "recipients": "no address"},
        {"kind": "mail", "recipients": "a@b.example\r\nBcc: c@d.example"},
        {"language": "fr"},
    ],
    ids=str,
)
def test_hostile_receivers_are_refused(api: Api, hook: Hook, change: dict[str, Any]) -> None:
    assert api("post", "/alarm-receivers", receiver(hook, **change)).status_code == 400
    assert not Receiver.objects.exists()


def test_the_test_button_tells_the_true_outcome(api: Api, page: Client, hook: Hook) -> None:
    number = api("post", "/alarm-receivers", receiver(hook)).json()["id"]
    assert api("post", f"/alarm-receivers/{number}/test").json()["result"] == "sent"
    assert hook.notices[-1]["event"] == "test"
    assert "x-gantry-signature" in hook.requests[-1][1]
    hook.answers.append(500)
    failed = api("post", f"/alarm-receivers/{number}/test").json()
    assert failed["result"] == "failed"
    assert "500" in failed["detail"]
    hook.answers.append(404)
    shown = page.post(f"{HOME}/receivers/{number}/", {"test": ""}).content.decode()
    assert 'data-result="failed"' in shown
    assert "404" in shown
    results = AuditRow.objects.filter(action="alarm-receiver.test").order_by("pk")
    assert [each.result for each in results] == ["done", "failed", "failed"]


@pytest.mark.parametrize("kind", ["dingtalk", "wecom", "slack"])
def test_chat_robots(api: Api, hook: Hook, kind: str) -> None:
    number = api("post", "/alarm-receivers", receiver(hook, kind=kind)).json()["id"]
    assert api("post", f"/alarm-receivers/{number}/test").json()["result"] == "sent"
    path = hook.requests[-1][0]
    assert ("&sign=" in path) is (kind == "dingtalk")
    hook.body = b'{"errcode":310000,"errmsg":"sign not match"}'
    outcome = api("post", f"/alarm-receivers/{number}/test").json()
    assert (outcome["result"] == "failed") is (kind != "slack")


def test_mail(api: Api, hook: Hook, settings: Settings) -> None:
    body = receiver(hook, kind="mail", recipients="ops@example.org, b@example.org")
    number = api("post", "/alarm-receivers", body).json()["id"]
    settings.EMAIL_HOST = ""
    assert "CONSOLE_SMTP_HOST" in api("post", f"/alarm-receivers/{number}/test").json()["detail"]
    settings.EMAIL_HOST = "mail.example.org"
    assert api("post", f"/alarm-receivers/{number}/test").json()["result"] == "sent"
    assert mail.outbox[-1].to == ["ops@example.org", "b@example.org"]
    assert "Gantry" in mail.outbox[-1].subject


def test_an_operator_may_not_touch_receivers(operator: User, local: Cluster, hook: Hook) -> None:
    api = Api(operator)
    assert api("post", "/alarm-receivers", receiver(hook)).status_code == 403
    assert browser(operator).get(f"{HOME}/receivers/create/").status_code == 403
    assert api("get", "/alarm-receivers").status_code == 200
    assert api("post", "/alarm-rules", RULE).status_code == 201


def test_what_concerns_all_clusters_needs_the_permission_for_all(
    staff: User, local: Cluster, hook: Hook
) -> None:
    api = Api(member("ops", "alarms:*@local"))
    page = browser(member("ops2", "alarms:*@local"))
    made = api("post", "/alarm-rules", RULE)
    assert made.status_code == 201
    own, shared = made.json()["id"], AlarmRule.objects.get(default_key="critical")
    silence = {"reason": "quiet", "duration_s": 60}
    everywhere = {"all_clusters": True}
    stored = Api(staff)("post", "/alarm-receivers", receiver(hook)).json()["id"]
    ended = Api(staff)("post", "/alarm-silences", {**silence, **everywhere}).json()["id"]
    refused: list[tuple[str, str, Any]] = [
        ("post", "/alarm-rules", {**RULE, "name": "more", **everywhere}),
        ("patch", f"/alarm-rules/{own}", everywhere),
        ("patch", f"/alarm-rules/{shared.pk}", {"enabled": False}),
        ("patch", f"/alarm-rules/{shared.pk}", {"all_clusters": False}),
        ("delete", f"/alarm-rules/{shared.pk}", None),
        ("post", "/alarm-silences", {**silence, **everywhere}),
        ("delete", f"/alarm-silences/{ended}", None),
        ("post", "/alarm-receivers", receiver(hook, name="mine", all_rules=True)),
        ("patch", f"/alarm-receivers/{stored}", {"all_rules": True}),
        ("post", f"/alarm-receivers/{stored}/test", None),
        ("delete", f"/alarm-receivers/{stored}", None),
    ]
    for method, path, body in refused:
        assert api(method, path, body).status_code == 403, (method, path)
    form = {"name": "x", "kind": "webhook", "url": hook.url, "language": "en"}
    for path, given in (
        (f"rules/{shared.pk}/", {"switch": "off"}),
        (f"rules/{shared.pk}/", {"removed": "1"}),
        ("silences/", {"duration_s": "3600", "reason": "r", "all_clusters": "on"}),
        ("silences/", {"end": str(ended)}),
        ("receivers/create/", form),
        (f"receivers/{stored}/", {"test": "1"}),
        (f"receivers/{stored}/", {"removed": "1"}),
    ):
        assert page.post(f"{HOME}/{path}", given).status_code == 403, (path, given)
    assert not hook.requests
    assert AlarmRule.objects.get(pk=shared.pk).enabled
    assert api("post", "/alarm-silences", silence).status_code == 201
    assert api("delete", f"/alarm-rules/{own}").status_code == 204


def test_an_alarm_is_acknowledged_silenced_and_shown(api: Api, page: Client) -> None:
    episode = firing()
    assert api.get("/alarms?state=firing")["total"] == 1
    assert api.get("/alarms?kind=topic")["total"] == 0
    for path in (f"{HOME}/", f"{HOME}/firing/", f"{HOME}/object/?kind=group&name=orders-1",
                 "/clusters/local/"):  # fmt: skip
        assert "orders-1" in page.get(path).content.decode(), path
    answer = api("put", f"/alarms/{episode.pk}/acknowledgement", {"note": "on it"})
    assert answer.status_code == 200, answer.content
    assert (answer.json()["state"], answer.json()["acknowledged_by"]) == ("acknowledged", "staff")
    assert "on it" in page.get(f"{HOME}/{episode.pk}/").content.decode()

    other = firing("orders-2")
    silence = {"kind": "group", "pattern": "orders-2", "duration_s": 60, "reason": "maintenance"}
    made = api("post", "/alarm-silences", silence)
    assert made.status_code == 201, made.content
    assert api.get(f"/alarms/{other.pk}")["state"] == "silenced"
    assert "orders-2" not in page.get(f"{HOME}/firing/").content.decode()
    assert api("delete", f"/alarm-silences/{made.json()['id']}").status_code == 204
    assert api.get(f"/alarms/{other.pk}")["state"] == "firing"
    Episode.objects.update(state="resolved", resolved_ms=now_ms())
    assert api("put", f"/alarms/{other.pk}/acknowledgement", {}).status_code == 409
    assert api.get("/alarms")["total"] == 0
    assert api.get("/alarms?state=resolved")["total"] == 2


def test_pages_change_rules_silences_and_receivers(page: Client, hook: Hook) -> None:
    form = {**RULE, "metric": "group.lag", "for_s": 0, "clear_for_s": 0, "enabled": "on"}
    assert page.post(f"{HOME}/rules/create/", form).status_code == 302
    rule = AlarmRule.objects.get(name=RULE["name"])
    assert (rule.scope, rule.metric, rule.cluster) == ("group", "lag", "local")
    url = f"{HOME}/rules/{rule.pk}/"
    assert page.post(url, {**form, "clear_threshold": 50}).status_code == 422
    assert page.post(url, {"switch": "off"}).status_code == 302
    rule.refresh_from_db()
    assert not rule.enabled
    row = page.get(f"{HOME}/rules/").content.decode().split(f'data-rule="{rule.pk}"')[1]
    state = row.split("</tr>")[0].split('data-label="Firing"')[1]
    assert ">off</span>" in state
    assert ">Switch on</button>" in state
    assert "Delete the rule “" in page.post(url, {"remove": ""}).content.decode()
    assert page.post(url, {"removed": ""}).status_code == 302
    silence = {"duration_s": "3600", "reason": "work", "pattern": "a*"}
    assert page.post(f"{HOME}/silences/", silence).status_code == 302
    assert "work" in page.get(f"{HOME}/silences/").content.decode()
    assert page.post(f"{HOME}/silences/", {"duration_s": "5"}).status_code == 422
    made = page.post(f"{HOME}/receivers/create/", {**receiver(hook), "language": "zh-hans"})
    assert made.status_code == 302, made.content[:2000]
    url = f"{HOME}/receivers/{Receiver.objects.get().pk}/"
    assert page.post(url, {"removed": ""}).status_code == 302
    assert not Receiver.objects.exists()
    for path in ("deliveries", "rules", "receivers", "silences", "receivers/create"):
        assert page.get(f"{HOME}/{path}/").status_code == 200


def test_the_list_says_who_was_notified(page: Client) -> None:
    told = firing("told")
    firing("silent")
    sent = Delivery.objects.create(
        receiver_name="on duty", rule_name="x", cluster="local", severity="critical",
        event="firing", created_ms=1, due_ms=1, state="sent",
    )  # fmt: skip
    Notified.objects.create(delivery=sent, episode=told, event="firing")
    _head, *rows = page.get(f"{HOME}/").content.decode().split("<tr data-alarm=")
    assert len(rows) == 2
    for row in rows:
        assert ("notified: on duty" in row) == (">told<" in row)
        assert ("nobody was notified" in row) == (">silent<" in row)


def test_texts_are_in_the_readers_language(page: Client) -> None:
    firing()
    chinese = page.get(f"{HOME}/", headers={"Accept-Language": "zh-hans"}).content.decode()
    assert "没有客户端" in chinese
    assert "严重的诊断结果" in chinese


@pytest.mark.usefixtures("db")
def test_metrics_count_alarms_and_deliveries() -> None:
    firing()
    Delivery.objects.create(
        receiver_name="r", rule_name="x", cluster="local", severity="critical", event="firing",
        created_ms=1, due_ms=1, state="failed",
    )  # fmt: skip
    labels = {"cluster": "local", "severity": "critical"}
    assert REGISTRY.get_sample_value("gantry_console_alarms_firing", labels) == 1
    failed = {"outcome": "failed"}
    assert REGISTRY.get_sample_value("gantry_console_alarm_deliveries", failed) == 1


def test_a_list_of_alarms_has_one_serializer(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """A serializer copies its fields: one per alarm took most of the time of a long list."""
    made = []
    usual = AlarmSerializer.get_fields

    def counting(self: AlarmSerializer) -> Any:
        made.append(self)
        return usual(self)

    monkeypatch.setattr(AlarmSerializer, "get_fields", counting)
    for number in range(5):
        firing(f"orders-{number}")
    assert len(api.get("/alarms")["items"]) == 5
    assert len(made) == 1

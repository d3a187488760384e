"""Definitions as code by page and REST: preview, application, undo, copy, hostile documents."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django import Settings

from console.areas.definitions import alarms
from console.audit.models import AuditRow
from console.gateway import definitions as gateway_definitions
from console.resources.models import Change, Protection
from console.services.alarms.models import AlarmRule
from console.services.alarms.rules_api import body_of
from console.services.masking.models import MaskingRule
from core_broker.definitions.model import Document
from core_broker.definitions.writing import ObjectTexts, object_texts
from core_broker.remoting.bodies import TopicConfig
from tests.api.conftest import Api, browser
from tests.api.test_roles import member
from tests.api.traffic import Traffic
from tests.support.cluster import Cluster

PAGE = "/clusters/local/definitions/"
HEAD = "format: gantry/definitions/1\n"


def post(api: Api, text: str, status: int = 200, query: str = "") -> Any:
    answer = api("post", f"/definitions{query}", {"definitions": text})
    assert answer.status_code == status, answer.content
    return answer.json()


def results(answer: Any) -> dict[str, str]:
    return {each["name"]: each["result"] for each in answer["items"]}


@pytest.mark.must_beat(27)
def test_export_wipe_import_export_gives_the_same_text(api: Api, traffic: Traffic) -> None:
    topic, group = traffic.topic("orders"), traffic.group("billing", retry_max_times=3)
    assert api("put", f"/topics/{topic}/protection").status_code == 200
    first = api.get("/definitions")["definitions"]
    assert f"{topic}: {{order: false, perm: 6, readQueueNums: 2, writeQueueNums: 2}}" in first
    assert not post(api, first, query="?dry_run=1")["drift"]
    traffic.clear()
    Protection.objects.all().delete()
    plan = post(api, first, query="?dry_run=1")
    assert plan["drift"]
    assert results(plan)[topic] == results(plan)[group] == "would create"
    assert topic not in traffic.admin(lambda admin: admin.topic_configs(traffic.broker_addr))
    done = post(api, first)
    assert results(done)[topic] == "created"
    assert results(done)[f"topics/{topic}"] == "updated"
    assert api.get("/definitions")["definitions"] == first
    row = AuditRow.objects.get(action="definitions.apply")
    assert row.result == "done"


def test_a_change_is_made_where_it_differs_and_can_be_undone(
    api: Api, traffic: Traffic, page: Client
) -> None:
    topic, other = traffic.topic("orders"), traffic.topic("other")
    done = post(api, f"{HEAD}topics:\n  {topic}: {{perm: 4}}\n")
    [item] = [each for each in done["items"] if each["name"] == topic]
    assert item["result"] == "updated"
    [change] = item["changes"]
    assert (change["field"], change["before"], change["after"]) == ("perm", 6, 4)
    assert results(done)[other] == "extra"
    number = Change.objects.get(name=topic).pk
    answer = page.post(f"/clusters/local/topics/{topic}/undo/{number}/")
    assert answer.status_code == 302
    configs = traffic.admin(lambda admin: admin.topic_configs(traffic.broker_addr))
    assert configs[topic].perm == 6


def test_what_fails_is_told_by_object(api: Api, traffic: Traffic) -> None:
    text = (
        f"{HEAD}topics:\n  fine: {{readQueueNums: 2, writeQueueNums: 4}}\n"
        "  bad name: {perm: 6}\n  apart: {brokers: {broker-x: {perm: 6}}}\n"
    )
    done = post(api, text, 207)
    assert results(done) == {"fine": "created", "bad name": "failed", "apart": "failed"}
    assert any("no consumer reads queues 2 to 3" in note for note in done["notes"])
    assert AuditRow.objects.get(action="definitions.apply").result == "partly"


def test_the_page_previews_a_file_and_applies_the_preview(page: Client, traffic: Traffic) -> None:
    text = f"{HEAD}topics:\n  paged: {{perm: 6}}\nprotection:\n  topics: [paged]\n"
    file = SimpleUploadedFile("cluster.yaml", text.encode())
    shown = page.post(PAGE, {"file": file}).content.decode()
    assert "Preview: nothing is changed yet" in shown
    assert "paged" not in traffic.admin(lambda admin: admin.topic_configs(traffic.broker_addr))
    done = page.post(PAGE, {"text": text, "apply": "1"}).content.decode()
    assert "Results" in done
    assert "paged" in traffic.admin(lambda admin: admin.topic_configs(traffic.broker_addr))
    assert Protection.objects.filter(name="paged").exists()
    again = page.post(PAGE, {"text": text}).content.decode()
    assert "No differences" in again
    answer = page.get(f"{PAGE}download/")
    assert "paged:" in answer.content.decode()
    assert page.post(PAGE, {}).status_code == 400


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "blank"),
        ("nothing", "no map"),
        (f"{HEAD}topics:\n  t: {{prem: 6}}", "did you mean 'perm'"),
        (f"{HEAD}protection: [a]", "lists of names"),
        (f"{HEAD}protection:\n  topics: {{a: b}}", "no list of names"),
        (f"{HEAD}a: &a [x]\nb: [*a, *a]", "line"),
        (f"{HEAD}topics: {'{a: ' * 200}", "no YAML"),
    ],
)
def test_an_unusable_document_changes_nothing(text: str, told: str, api: Api) -> None:
    answer = api("post", "/definitions", {"definitions": text})
    assert answer.status_code == 400, answer.content
    assert told in answer.content.decode()
    assert not AuditRow.objects.filter(action="definitions.apply").exists()


def test_ten_megabytes_are_refused(api: Api, page: Client) -> None:
    assert api("post", "/definitions", {"definitions": "x" * 10_000_000}).status_code == 413
    file = SimpleUploadedFile("cluster.yaml", b"x" * 10_000_000)
    answer = page.post(PAGE, {"file": file})
    assert answer.status_code == 400
    assert "the maximum is 4 MiB" in answer.content.decode()


def test_definitions_are_copied_from_another_cluster(
    api: Api, traffic: Traffic, local: Cluster, settings: Settings, staff: User
) -> None:
    settings.CONSOLE_CLUSTERS = {"local": local.namesrv_addr, "twin": local.namesrv_addr}
    topic = traffic.topic("copied")
    answer = api("post", "/definitions?dry_run=1", {"from_cluster": "twin"})
    assert answer.status_code == 200, answer.content
    assert results(answer.json())[topic] == "same"
    assert api("post", "/definitions", {"from_cluster": "nowhere"}).status_code == 404
    both = {"from_cluster": "twin", "definitions": HEAD}
    assert api("post", "/definitions", both).status_code == 400


def test_rules_of_alarms_are_a_section(api: Api, local: Cluster) -> None:
    rule = "{source: metric, scope: group, metric: lag, threshold: 500, severity: warning}"
    text = f"{HEAD}alarms:\n  Much lag: {rule}\n"
    assert results(post(api, text))["Much lag"] == "created"
    exported = api.get("/definitions")["definitions"]
    assert "Much lag" in exported
    assert not post(api, exported, query="?dry_run=1")["drift"]
    done = post(api, f"{HEAD}alarms:\n  Much lag: {{threshold: 600}}\n")
    [item] = [each for each in done["items"] if each["name"] == "Much lag"]
    assert [(each["field"], each["after"]) for each in item["changes"]] == [("threshold", 600.0)]
    wrong = f"{HEAD}alarms:\n  Odd: {{source: none}}\n  Lost: {{receivers: [nobody]}}\n"
    assert {"Odd": "failed", "Lost": "failed"}.items() <= results(post(api, wrong, 207)).items()


@pytest.mark.parametrize(
    "values",
    [
        {
            "source": "metric",
            "scope": "group",
            "metric": "lag",
            "clear_threshold": 2,
            "note": "é: x",
        },
        {
            "source": "finding",
            "all_clusters": True,
            "enabled": False,
            "finding_severity": "critical",
        },
    ],
)
def test_a_rule_has_the_fields_of_a_request(values: dict[str, Any], api: Api) -> None:
    body = {"name": "Some", "severity": "warning", "threshold": 3, **values}
    assert api("post", "/alarm-rules", body).status_code == 201
    [rule] = AlarmRule.objects.filter(name="Some")
    wanted = {key: each for key, each in body_of(rule).items() if each is not None}
    del wanted["name"]
    assert alarms.KIND.fields(rule) == wanted


def test_objects_are_written_once_until_another_tool_changes_one(
    api: Api, traffic: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, written = traffic.topic("orders"), []

    def counted(document: Document) -> ObjectTexts:
        written.append(document)
        return object_texts(document)

    def put(perm: int) -> None:
        config = TopicConfig(topic_name=topic, read_queue_nums=2, write_queue_nums=2, perm=perm)
        traffic.admin(lambda admin: admin.create_topic(traffic.broker_addr, config))

    monkeypatch.setattr(gateway_definitions, "object_texts", counted)
    for perm in (6, 4):
        put(perm)
        line = f"  {topic}: {{order: false, perm: {perm}, readQueueNums: 2, writeQueueNums: 2}}\n"
        for _ in range(3):
            assert line in api.get("/definitions")["definitions"]
    assert len(written) == 2, "once per change"


@pytest.mark.parametrize(
    "names", ["[{a: b}]", "{a: b}", "[[x]]", "word", f"[{', '.join('x' * 51)}]"]
)
def test_receivers_that_are_no_names_fail(names: str, api: Api) -> None:
    rule = f"{{source: finding, severity: warning, receivers: {names}}}"
    done = post(api, f"{HEAD}alarms:\n  Odd: {rule}\n", 207)
    assert results(done)["Odd"] == "failed"


@pytest.mark.usefixtures("default_rules")
def test_a_rule_of_all_clusters_needs_the_permission_for_all(local: Cluster) -> None:
    api = Api(member("dan", "definitions:*@local", "alarms:*@local"))
    rule = "source: finding, severity: warning"
    text = f"{HEAD}alarms:\n  Here: {{{rule}}}\n  There: {{{rule}, all_clusters: true}}\n"
    text += "  Critical findings: {enabled: false}\n"
    done = results(post(api, text, 207))
    assert done["Here"] == "created"
    assert done["There"] == done["Critical findings"] == "failed"
    assert AlarmRule.objects.get(default_key="critical").enabled


def test_rules_of_alarms_need_the_permission_to_write_them(db: None, local: Cluster) -> None:
    api = Api(member("eve", "definitions:*@local", "alarms:read@local"))
    rule = "source: metric, scope: group, metric: lag, threshold: 600, severity: warning"
    done = post(api, f"{HEAD}alarms:\n  Quiet: {{{rule}}}\n", 207)
    assert results(done)["Quiet"] == "failed"
    assert not AlarmRule.objects.filter(name="Quiet").exists()


RULE = "{source: finding, severity: warning}"


def pay_reader(*more: str) -> Api:
    """Administers definitions, and reads the topics `pay-…` only."""
    return Api(member("pat", "definitions:admin", "topics:read:pay-*", *more))


def test_an_export_has_only_what_the_user_may_read(api: Api, traffic: Traffic) -> None:
    seen, hidden, group = traffic.topic("pay"), traffic.topic("closed"), traffic.group("closed")
    for kind, name in (("topics", seen), ("topics", hidden), ("groups", group)):
        assert api("put", f"/{kind}/{name}/protection").status_code == 200
    post(api, f"{HEAD}alarms:\n  Quiet alarm: {RULE}\n")
    MaskingRule.objects.create(
        name="Quiet mask", cluster="local", topic="*", kind="body", changed_ms=1
    )
    limited = pay_reader()
    exported = limited.get("/definitions")
    text = exported["definitions"]
    assert seen in text
    assert "protection:\n  topics:" in text
    for name in (
        hidden,
        group,
        "Quiet alarm",
        "Quiet mask",
        "\ngroups:",
        "\nalarms:",
        "\nmasking:",
    ):
        assert name not in text, name
    notes = " ".join(exported["notes"])
    assert "topics in part: only the names that your role permits with topics:read" in notes
    for part, needed in (
        ("groups", "groups:read"),
        ("acls", "acl:read"),
        ("alarms", "alarms:read"),
        ("masking", "masking:read"),
    ):
        assert f"# {part} left out: your role has no permission {needed}." in text or (
            part == "acls"  # without access control the broker has the word
        )
    page = browser(User.objects.get(username="pat"))
    assert page.get(f"{PAGE}download/").content.decode() == text
    assert "your role has no permission alarms:read" in page.get(PAGE).content.decode()
    whole = api.get("/definitions")["definitions"]
    for name in (hidden, group, "Quiet alarm", "Quiet mask"):
        assert name in whole, name
    assert "your role" not in whole


def test_a_plan_shows_and_changes_only_what_the_user_may_read(api: Api, traffic: Traffic) -> None:
    seen, hidden, group = traffic.topic("pay"), traffic.topic("closed"), traffic.group("closed")
    post(api, f"{HEAD}alarms:\n  Quiet: {RULE}\n")
    limited = pay_reader("masking:read")
    text = (
        f"{HEAD}topics:\n  {seen}: {{perm: 4}}\n  {hidden}: {{perm: 4}}\n"
        f"groups:\n  {group}: {{consumeEnable: false}}\n"
        "alarms:\n  Quiet: {enabled: false}\n  New: {enabled: false}\n"
        f"protection:\n  topics: [{hidden}]\n"
    )
    other = traffic.topic("closed")
    planned = post(limited, text, query="?dry_run=1")
    assert results(planned) == {
        seen: "would update",
        hidden: "failed",
        group: "failed",
        "Quiet": "failed",
        "New": "failed",
        f"topics/{hidden}": "failed",
    }
    assert other not in str(planned), "names that only the cluster has"
    failed = [each for each in planned["items"] if each["result"] == "failed"]
    assert not any(each["changes"] for each in failed)
    assert {each["error"].rpartition(" ")[0] for each in failed} == {
        "Your role may not read this object: the permission topics:read is",
        "Your role may not read this object: the permission groups:read is",
        "Your role may not read this object: the permission alarms:read is",
    }
    done = post(limited, text, 207)
    assert results(done)[seen] == "updated"
    configs = traffic.admin(lambda admin: admin.topic_configs(traffic.broker_addr))
    assert (configs[seen].perm, configs[hidden].perm) == (4, 6)
    assert AlarmRule.objects.get(name="Quiet").enabled
    assert not Protection.objects.exists()


def test_a_copy_takes_only_what_the_user_may_read(
    api: Api, traffic: Traffic, local: Cluster, settings: Settings
) -> None:
    settings.CONSOLE_CLUSTERS = {"local": local.namesrv_addr, "twin": local.namesrv_addr}
    seen, hidden = traffic.topic("pay"), traffic.topic("closed")
    copied = pay_reader()("post", "/definitions?dry_run=1", {"from_cluster": "twin"}).json()
    assert results(copied)[seen] == "same"
    assert hidden not in str(copied)


def test_faults_are_in_the_language_of_the_reader(api: Api, page: Client) -> None:
    chinese = {"Accept-Language": "zh-hans"}
    for text, told in (
        (f"{HEAD}topics:\n  t: {{prem: 6}}", "第 3 行"),
        (f"{HEAD}topics:\n  t: {{brokers: {{none: {{perm: 6}}}}}}", "集群中没有 Broker none"),
        (f"{HEAD}alarms: {{a: b}}", "alarms"),
    ):
        answer = api("post", "/definitions?dry_run=1", {"definitions": text}, **chinese)
        said = answer.json()
        assert told in str(said), said
        assert not {"the", "has", "no"} & set(str(said.get("detail", "")).split()), said
    shown = page.post(PAGE, {"text": f"{HEAD}topics: [a]"}, headers=chinese).content.decode()
    assert "不是键值映射" in shown

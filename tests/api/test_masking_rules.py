"""Rules of masked fields: preview, REST, pages, definitions, and who may change a rule."""

import json

import pytest
from django.contrib.auth.models import User

from console.audit.models import AuditRow
from console.services.masking.models import MaskingRule
from core_broker.message.model import Message
from tests.api.conftest import Api, browser
from tests.api.stored import store
from tests.api.test_masking import BODY, PAGES, READS, topic
from tests.api.test_roles import member
from tests.api.traffic import Traffic

__all__ = ["topic"]


def test_the_editor_previews_and_a_change_needs_the_right_to_see(
    staff: User, local: object, traffic: Traffic, topic: str
) -> None:
    store(traffic, Message(topic, BODY))
    wish = {"name": "cards", "topic": topic, "kind": "json", "expression": "$..card"}
    shown = Api(staff)(
        "post", "/masking-rules:preview", {**wish, "sample": '{"card":1}', "sample_topic": topic}
    ).json()
    assert (shown["sample"], shown["applies"], shown["changed"]) == ('{"card":"***"}', True, 1)
    assert not MaskingRule.objects.exists()
    made = Api(staff)("post", "/masking-rules", wish)
    assert made.status_code == 201, made.content
    number = made.json()["id"]
    keeper = member("keeper", "masking:admin", *READS)
    for method, path, body in (
        ("patch", f"/masking-rules/{number}", {"enabled": False}),
        ("delete", f"/masking-rules/{number}", None),
    ):
        refused = Api(keeper)(method, path, body)
        assert refused.status_code == 409, refused.content
        assert "messages:unmasked" in refused.content.decode()
    assert Api(keeper)("post", "/masking-rules", {**wish, "name": "more"}).status_code == 201
    assert Api(staff)("patch", f"/masking-rules/{number}", {"enabled": False}).status_code == 200
    assert Api(staff)("delete", f"/masking-rules/{number}").status_code == 204
    actions = set(AuditRow.objects.values_list("action", flat=True))
    assert {"masking-rule.create", "masking-rule.update", "masking-rule.delete"} <= actions


@pytest.mark.parametrize(
    ("kind", "expression"),
    [("json", "card"), ("json", "$"), ("regex", "("), ("json", ""), ("property", "UNIQ_KEY")],
)
def test_unusable_expressions_are_refused(
    staff: User, local: object, kind: str, expression: str
) -> None:
    wish = {"name": "x", "topic": "*", "kind": kind, "expression": expression}
    answer = Api(staff)("post", "/masking-rules", wish)
    assert answer.status_code == 400, answer.content
    assert "expression" in answer.content.decode()


def test_pages_of_rules(staff: User, reader: User, local: object, topic: str) -> None:
    page = browser(staff)
    wish = {"name": "cards", "topic": topic, "kind": "json", "expression": "$..card"}
    form = {**wish, "enabled": "on", "sample": '{"a": {"card": 5}}', "sample_topic": topic}
    shown = page.post(f"{PAGES}/masking/create/", {**form, "preview": ""}).content.decode()
    assert "{&quot;a&quot;:{&quot;card&quot;:&quot;***&quot;}}" in shown
    assert page.post(f"{PAGES}/masking/create/", form).status_code == 302
    listed = browser(reader).get(f"{PAGES}/masking/").content.decode()
    assert "$..card" in listed
    assert browser(reader).get(f"{PAGES}/masking/create/").status_code == 403
    number = MaskingRule.objects.get().pk
    asked = page.post(f"{PAGES}/masking/{number}/", {"delete": ""})
    assert asked.status_code == 200
    assert "sees these fields at once" in asked.content.decode()
    wrong = page.post(f"{PAGES}/masking/{number}/", {"delete": "", "typed_name": "card"})
    assert wrong.status_code == 422
    assert MaskingRule.objects.exists(), "only the typed name deletes"
    typed = {"delete": "", "typed_name": "cards"}
    assert page.post(f"{PAGES}/masking/{number}/", typed).status_code == 302
    assert not MaskingRule.objects.exists()


def test_rules_are_a_section_of_definitions(staff: User, local: object) -> None:
    api = Api(staff)
    rule = "{topic: 'pay-*', kind: json, expression: $..card}"
    text = f"format: gantry/definitions/1\nmasking:\n  Cards: {rule}\n"

    def applied(text: str, user: Api = api) -> str:
        return json.dumps(user("post", "/definitions", {"definitions": text}).json())

    assert '"created": 1' in applied(text)
    assert MaskingRule.objects.get().state["expression"] == "$..card"
    exported = api("get", "/definitions").content.decode()
    assert "Cards" in exported
    off = text.replace("json,", "json, enabled: false,")
    limited = Api(member("limited", "definitions:admin", "masking:admin"))
    assert "messages:unmasked" in applied(off, limited)
    assert MaskingRule.objects.get().enabled
    applied(off)
    assert not MaskingRule.objects.get().enabled
    assert "JSON path" in applied(text.replace("$..card", "card"))


def test_definitions_change_users_only_with_the_permission_for_access_control(
    local: object, db: None
) -> None:
    """Otherwise the role could create a super user of the brokers."""
    text = "format: gantry/definitions/1\nusers:\n  eve: {userType: Super, password: x12345678}\n"
    limited = Api(member("limited", "definitions:admin"))
    assert limited("post", "/definitions", {"definitions": text}).status_code == 403
    assert limited("post", "/definitions?dry_run=true", {"definitions": text}).status_code == 200

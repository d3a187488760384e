"""A form that is older than the object: nothing is overwritten unseen, and no input is lost."""

import re
from typing import Any

from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from console.accounts.models import CustomRole
from console.services.alarms.models import AlarmRule, Receiver
from console.services.masking.models import MaskingRule
from console.services.schemas.models import BodyRule, BodySchema
from tests.api.conftest import Api, browser
from tests.api.test_body_schemas import upload
from tests.api.test_pages import html
from tests.api.traffic import Traffic
from tests.support.cluster import Cluster
from tests.unit.console.body_schemas import ORDER_AVRO

HOME = "/clusters/local"
CHANGED = "Somebody else has changed this since you opened the page."
LOGIN = "/accounts/login/"


def version(text: str) -> str:
    found = re.search(r'name="version" value="([0-9a-f]{16})"', text)
    assert found is not None
    return found[1]


def overtaken(page: Client, url: str, other: dict[str, Any], own: dict[str, Any]) -> None:
    """Open a form; somebody else saves `other`; `own` is refused with its input, then saved."""
    opened = version(html(page, url))
    assert page.post(url, {**other, "version": opened}).status_code == 302
    refused = page.post(url, {**own, "version": opened})
    assert refused.status_code == 409
    text = refused.content.decode()
    assert CHANGED in text
    for name, value in own.items():
        if value != other[name]:
            assert value in text, f"the input of {name} is gone"
    wrong = page.post(url, {**own, "version": opened, "name": "", "topic": "", "permissions": ""})
    assert wrong.status_code in (409, 422)
    if wrong.status_code == 422:
        assert version(wrong.content.decode()) == opened, "an error is no look at the other change"
    assert page.post(url, {**own, "version": version(text)}).status_code == 302


def test_rules_and_receivers_of_alarms(page: Client, local: Cluster) -> None:
    values = {"name": "slow", "source": "metric", "metric": "group.lag", "severity": "warning"}
    form = {**values, "threshold": "5", "for_s": "0", "clear_for_s": "0", "enabled": "on"}
    assert page.post(f"{HOME}/alarms/rules/create/", form).status_code == 302
    rule = AlarmRule.objects.get(name="slow")
    url = f"{HOME}/alarms/rules/{rule.pk}/"
    overtaken(page, url, {**form, "threshold": "6.5"}, {**form, "threshold": "7.25"})
    rule.refresh_from_db()
    assert rule.threshold == 7.25
    opened = version(html(page, url))
    page.post(url, {**form, "threshold": "9", "version": opened})
    seen = page.post(url, {**form, "version": opened, "preview": ""})
    assert version(seen.content.decode()) == opened, "a preview is no look at the other change"
    mail = {"name": "duty", "kind": "mail", "recipients": "a@example.org", "language": "en"}
    assert page.post(f"{HOME}/alarms/receivers/create/", mail).status_code == 302
    url = f"{HOME}/alarms/receivers/{Receiver.objects.get().pk}/"
    overtaken(
        page, url, {**mail, "recipients": "b@example.org"}, {**mail, "recipients": "c@example.org"}
    )
    assert Receiver.objects.get().recipients == "c@example.org"


def test_roles(staff: User, reader: User) -> None:
    page, url = browser(staff), "/accounts/roles/one/payments/"
    CustomRole.objects.create(name="payments", permissions=["topics:read"])
    overtaken(page, url, {"permissions": "groups:read"}, {"permissions": "messages:read"})
    assert CustomRole.objects.get().permissions == ["messages:read"]
    account = f"/accounts/users/{reader.pk}/"
    opened = version(html(page, account))
    page.post(account, {"role": "none", "roles": ["payments"], "version": opened})
    told = page.post(account, {"role": "operator", "version": opened}, follow=True)
    assert "Somebody else has changed the roles" in told.content.decode()
    assert User.objects.get(pk=reader.pk).profile.role == "none"


def test_rules_of_bodies_and_of_masks(api: Api, page: Client) -> None:
    upload(api)
    rule = {"topic": "orders", "schema": "shop", "type_name": "shop.v1.Order", "framing": "raw"}
    assert page.post(f"{HOME}/body-schemas/rules/create/", rule).status_code == 302
    url = f"{HOME}/body-schemas/rules/{BodyRule.objects.get().pk}/"
    overtaken(page, url, {**rule, "topic": "orders-a"}, {**rule, "topic": "orders-b"})
    mask = {"name": "cards", "topic": "*", "kind": "json", "expression": "$..card"}
    assert page.post(f"{HOME}/masking/create/", mask).status_code == 302
    url = f"{HOME}/masking/{MaskingRule.objects.get().pk}/"
    overtaken(page, url, {**mask, "expression": "$..iban"}, {**mask, "expression": "$..pin"})
    assert (BodyRule.objects.get().topic, MaskingRule.objects.get().expression) == (
        "orders-b",
        "$..pin",
    )


def test_an_upload_replaces_only_the_schema_that_its_page_has_shown(api: Api, page: Client) -> None:
    url = f"{HOME}/body-schemas/upload/"

    def save(name: str, content: bytes, opened: str) -> Any:
        given = {"name": name, "format": "avro", "version": opened}
        return page.post(url, given | {"content": SimpleUploadedFile("order.avsc", content)})

    def opened(text: str) -> str:
        found = re.search(r'name="version" value="([^"]+)"', text)
        assert found is not None
        return found[1]

    first, second = ORDER_AVRO, ORDER_AVRO.replace(b"Order", b"Bill")
    empty = opened(html(page, url))
    assert save("shop", first, empty).status_code == 302
    refused = save("shop", second, empty)
    assert (refused.status_code, "There is a schema of this name" in refused.content.decode()) == (
        409,
        True,
    )
    assert BodySchema.objects.get().content == first
    assert save("shop", second, opened(refused.content.decode())).status_code == 302
    shown = opened(html(page, f"{url}?name=shop"))
    assert save("shop", first, shown).status_code == 302
    assert save("shop", second, shown).status_code == 409, "replaced since the page was opened"
    assert save("other", second, shown).status_code == 302, "a new name overwrites nothing"
    BodySchema.objects.filter(name="shop").delete()
    assert save("shop", second, shown).status_code == 302, "deleted meanwhile"


def test_definitions_that_differ_from_their_preview(page: Client, traffic: Traffic) -> None:
    topic = traffic.topic("orders")
    text = f"format: gantry/definitions/1\ntopics:\n  {topic}: {{perm: 4}}\n"
    url = f"{HOME}/definitions/"
    shown = page.post(url, {"text": text})
    opened = version(shown.content.decode())
    assert shown.context["form"]["text"].value() == text, "the text can be edited"
    assert page.post(url, {"text": text, "apply": "1", "version": opened}).status_code == 200
    late = page.post(url, {"text": text, "apply": "1", "version": opened})
    assert late.status_code == 409
    assert "The cluster has changed since the preview" in late.content.decode()
    assert not late.context["results"]


def test_a_rule_that_is_gone_is_not_found(page: Client, local: Cluster) -> None:
    rule = AlarmRule.objects.create(name="slow", source="metric", cluster="local", changed_ms=1)
    url = f"{HOME}/alarms/rules/{rule.pk}/"
    rule.delete()
    for form in ({"removed": ""}, {"remove": ""}, {"switch": "off"}, {"name": "x"}):
        assert page.post(url, form).status_code == 404


def test_a_form_after_the_end_of_the_session_leads_back_to_its_page(staff: User) -> None:
    url = f"{HOME}/alarms/rules/create/"
    for referer, found in (
        (f"http://testserver{url}?x=1", "%2Fclusters%2Flocal%2Falarms%2Frules%2Fcreate%2F%3Fx%3D1"),
        ("http://elsewhere.example/page", "%2F"),
        ("http://testserver//elsewhere.example/", "%2F"),
        ("javascript:alert(1)", "%2F"),
        ("", "%2F"),
    ):
        answer = Client().post(url, {"name": "x"}, headers={"Referer": referer})
        assert answer.headers["Location"] == f"{LOGIN}?next={found}", referer


def test_a_form_from_before_the_sign_in_leads_back_to_its_page(staff: User) -> None:
    page = Client(enforce_csrf_checks=True)
    page.force_login(staff, backend="django.contrib.auth.backends.ModelBackend")
    url = "/accounts/roles/create/"
    answer = page.post(url, {"name": "x"}, headers={"Referer": f"http://testserver{url}"})
    assert answer.status_code == 403
    text = answer.content.decode()
    assert "Nothing was saved" in text
    assert f'href="{url}"' in text
    assert "data-interrupted" in text

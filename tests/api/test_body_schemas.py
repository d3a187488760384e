"""Body schemas by page and REST: upload, rules, decoded bodies everywhere, permissions, audit."""

import base64
import csv
import hashlib
import io
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from console.audit.models import AuditRow
from console.services.masking.models import MaskingRule
from console.services.schemas import compiling
from console.services.schemas.models import BodyRule, BodySchema
from core_broker.message.model import Message
from tests.api.conftest import API, Api
from tests.api.stored import Dead, routed_topic, store
from tests.api.test_pages import html
from tests.api.test_roles import member
from tests.api.traffic import Traffic
from tests.unit.console.body_schemas import ORDER_AVRO, order_bytes, order_set
from tests.unit.console.test_schema_sources import packed

PAGE = "/clusters/local/body-schemas/"
ORDER = {"schema": "shop", "type_name": "shop.v1.Order"}


@pytest.fixture
def topic(traffic: Traffic) -> str:
    return routed_topic(traffic, "orders")


def upload(api: Api, name: str = "shop", kind: str = "protobuf", content: bytes = b"") -> Any:
    content = content or (order_set() if kind == "protobuf" else ORDER_AVRO)
    return api("put", f"/body-schemas/{name}", encoded(content, kind))


@pytest.mark.must_beat(33)
def test_a_rule_decodes_detail_list_search_and_export_but_not_the_download(
    api: Api, page: Client, traffic: Traffic, topic: str
) -> None:
    body = order_bytes(id=7, customer="Zoë", state=1)
    sent = store(traffic, Message(topic, body), Message(topic, b'{"id": 7}'))
    address, other = (each.offset_msg_id for each in sent)
    before = api.get(f"/messages/{address}")["body"]
    assert before["encoding"] == "binary"
    assert upload(api).json()["types"] == ["shop.v1.Order", "shop.v1.Refund"]
    made = api("post", "/body-rules", {"topic": f"{topic[:-1]}*", **ORDER})
    assert made.status_code == 201
    shown = api.get(f"/messages/{address}")["body"]
    assert (shown["form"], shown["encoding"]) == ("json", "Protobuf shop.v1.Order")
    assert json.loads(shown["text"]) == {"id": 7, "customer": "Zoë", "state": "PAID"}
    assert shown["sha256"] == before["sha256"] == hashlib.sha256(body).hexdigest()
    assert page.get(f"/clusters/local/messages/{address}/body/").content == body
    unfit = api.get(f"/messages/{other}")["body"]
    assert unfit["form"] == "hex"
    assert "not a shop.v1.Order" in unfit["misfit"]
    assert '"id": 7' not in html(page, f"/clusters/local/messages/{other}/")
    found = api.get(f"/messages?topic={topic}&body_test=json&body=$.customer = Zoë")["items"]
    assert [each["offset_msg_id"] for each in found] == [address]
    listed = html(page, f"/clusters/local/messages/?topic={topic}")
    assert "{&quot;id&quot;: 7, &quot;customer&quot;: &quot;Zoë&quot;" in listed
    tested = api("post", "/messages:test-filter", {"topic": topic, "body": "paid"})
    assert tested.json()["matched"] == 1
    assert api("delete", made["Location"].removeprefix(API)).status_code == 204
    assert api.get(f"/messages/{address}")["body"] == before


def test_a_masked_body_is_not_decoded(api: Api, traffic: Traffic, topic: str) -> None:
    """An expression for text finds no number in Protobuf, and the decoded body would show it."""
    body = order_bytes(id=4111222233334444, customer="Zoë")
    [sent] = store(traffic, Message(topic, body))
    upload(api)
    api("post", "/body-rules", {"topic": topic, **ORDER})
    MaskingRule.objects.create(
        name="cards", topic=topic, kind="regex", expression="[0-9]{16}", changed_ms=1
    )
    assert "4111222233334444" in api.get(f"/messages/{sent.offset_msg_id}")["body"]["text"]
    blind = Api(member("blind", "messages:read"))
    shown = blind.get(f"/messages/{sent.offset_msg_id}")["body"]
    assert shown["text"] == "***"
    query = f"/messages?topic={topic}&body_test=json&body=$.id > 0"
    assert blind.get(query)["items"] == []
    assert len(api.get(query)["items"]) == 1


def test_dead_letters_are_searched_resent_and_exported_by_the_rule_of_their_topic(
    api: Api, page: Client, traffic: Traffic
) -> None:
    dead = Dead(traffic, count=1)
    body = order_bytes(id=4111222233334444, customer="Zoë", state=1)
    dead.add(Message(dead.topic, body))
    path = f"/dlq/{dead.group}"
    assert api.get(f"{path}/messages?text=paid")["items"] == []
    upload(api)
    api("post", "/body-rules", {"topic": dead.topic, **ORDER})
    for text, number in (("paid", 1), ("4111222233334444", 1), ("zoë", 1), ("MESSAGE 0", 0)):
        found = api.get(f"{path}/messages?text={text}")["items"]
        assert [each["queue_offset"] for each in found] == [number], text
    assert "&quot;PAID&quot;" in html(page, f"/clusters/local{path}/")
    wish = {"filter": {"text": "paid"}, "target": "retry"}
    assert api("post", f"{path}/resend?dry_run=1", wish).json()["planned"] == 1
    assert api("post", f"{path}/replays?dry_run=1", wish).json()["matched"] == 1
    decoded, plain = exported(api, dead.group)
    assert decoded["body_encoding"] == "Protobuf shop.v1.Order"
    assert json.loads(decoded["body"])["state"] == "PAID"
    assert (plain["body"], plain["body_encoding"]) == ("bWVzc2FnZSAw", "base64")
    table = page.get(f"/clusters/local{path}/export/?format=csv&text=paid").getvalue().decode()
    [row] = csv.DictReader(io.StringIO(table))
    assert json.loads(row["body"])["id"] == 4111222233334444


def test_masked_dead_letters_are_not_decoded(api: Api, traffic: Traffic) -> None:
    dead = Dead(traffic, count=1)
    dead.add(Message(dead.topic, order_bytes(id=4111222233334444, customer="Zoë")))
    upload(api)
    api("post", "/body-rules", {"topic": dead.topic, **ORDER})
    MaskingRule.objects.create(
        name="cards", topic=dead.topic, kind="regex", expression="[0-9]{16}", changed_ms=1
    )
    blind = Api(member("blind", "deadletters:write", "messages:read"))
    query = f"/dlq/{dead.group}/messages?text=4111222233334444"
    assert blind.get(query)["items"] == []
    assert len(api.get(query)["items"]) == 1
    assert exported(blind, dead.group)[0]["body"] == "***"
    assert "4111222233334444" in exported(api, dead.group)[0]["body"]


def exported(api: Api, group: str) -> list[dict[str, Any]]:
    answer = api("get", f"/dlq/{group}/export")
    return [json.loads(line) for line in answer.getvalue().splitlines()]


SOURCE = b'syntax = "proto3"; package shop.v1; message Order { int64 id = 1; string customer = 2; }'


@pytest.fixture
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine starts the compiler slowly."""
    monkeypatch.setattr(compiling, "COMPILE_S", 120.0)


@pytest.mark.usefixtures("_patient")
def test_a_source_is_compiled_and_decodes(api: Api, traffic: Traffic, topic: str) -> None:
    body: dict[str, Any] = {"format": "protobuf", "is_source": True}
    saved = api("put", "/body-schemas/shop", body | encoded(SOURCE))
    assert (saved.status_code, saved.json()["types"]) == (200, ["shop.v1.Order"])
    wrong = api("put", "/body-schemas/shop", body | encoded(SOURCE.replace(b"int64", b"\nInt")))
    assert wrong.status_code == 400
    assert "schema.proto:2:1: " in str(wrong.json())
    assert api("put", "/body-schemas/a", body | encoded(ORDER_AVRO, "avro")).status_code == 400
    api("post", "/body-rules", {"topic": topic, **ORDER})
    [sent] = store(traffic, Message(topic, order_bytes(id=7, customer="Zoë")))
    shown = api.get(f"/messages/{sent.offset_msg_id}")["body"]["text"]
    assert json.loads(shown) == {"id": 7, "customer": "Zoë"}


@pytest.mark.usefixtures("_patient")
def test_the_page_compiles_a_source_and_shows_all_errors(page: Client) -> None:
    given: dict[str, Any] = {"name": "shop", "format": "source"}
    file = SimpleUploadedFile("order.proto", b"message A {\n  X a = 1;\n  Y b = 2;\n}")
    refused = page.post(f"{PAGE}upload/", given | {"content": file})
    assert refused.status_code == 422
    for place in ("schema.proto:2:", "schema.proto:3:"):
        assert place in refused.content.decode()
    file = SimpleUploadedFile("order.proto", SOURCE)
    assert page.post(f"{PAGE}upload/", given | {"content": file}).status_code == 302
    assert "shop.v1.Order" in html(page, f"{PAGE}schema/shop/")


def hostile() -> list[bytes]:
    """Uploads that are no sources, and no archives with sources."""
    return [
        packed({"a.proto": "\x00" * (8 * 1024 * 1024)}),
        packed({"../../a.proto": "", "/etc/a.proto": ""}),
        packed({f"{number}.proto": "" for number in range(2_000)}),
        packed({"a.proto": ""})[:-30],
        b"PK\x05\x06" + b"\xff" * 18,
        b"\x00" * 2**20,
        b"x" * (2**20 + 1),
    ]


@pytest.mark.usefixtures("_patient")
def test_hostile_uploads_are_refused_with_the_form(page: Client, api: Api) -> None:
    for content in hostile():
        given: dict[str, Any] = {"name": "shop", "format": "source"}
        file = SimpleUploadedFile("a.zip", content)
        refused = page.post(f"{PAGE}upload/", given | {"content": file})
        assert refused.status_code == 422, content[:20]
        assert refused.context["form"].errors["content"]
        assert 'value="shop"' in refused.content.decode(), "the name stays"
        body = {"format": "protobuf", "is_source": True, **encoded(content)}
        assert api("put", "/body-schemas/shop", body).status_code == 400, content[:20]
    assert not BodySchema.objects.exists()


def encoded(content: bytes, kind: str = "protobuf") -> dict[str, str]:
    return {"format": kind, "content_base64": base64.b64encode(content).decode()}


def test_changes_are_checked_and_audited(api: Api, topic: str) -> None:
    assert upload(api, content=b"nonsense").status_code == 400
    assert upload(api, name="a b").status_code == 400
    assert upload(api).status_code == 200
    assert upload(api, name="avro", kind="avro").status_code == 200
    for wrong in (
        {"topic": topic, "schema": "absent", "type_name": "x"},
        {"topic": topic, "schema": "shop", "type_name": "shop.v1.Absent"},
        {"topic": topic, "schema": "shop", "type_name": ""},
        {"topic": "a b", **ORDER},
        {"topic": "*" * 9, **ORDER},
        {"topic": topic, "schema": "avro", "framing": "delimited"},
    ):
        assert api("post", "/body-rules", wrong).status_code == 400, wrong
    number = api("post", "/body-rules", {"topic": topic, **ORDER}).json()["number"]
    assert api("post", "/body-rules", {"topic": topic, **ORDER}).status_code == 400
    changed = api("put", f"/body-rules/{number}", {"topic": topic, "schema": "avro"})
    assert changed.json()["type_name"] == ""
    assert api("delete", "/body-schemas/avro").status_code == 409
    assert upload(api, name="avro").status_code == 409  # the rule would lose its type
    assert api("delete", f"/body-rules/{number}").status_code == 204
    assert api("delete", "/body-schemas/avro").status_code == 204
    rows = AuditRow.objects.filter(result="done").order_by("pk").values_list("action", "target")
    assert list(rows) == [
        ("body-schema.update", "shop"),
        ("body-schema.update", "avro"),
        ("body-rule.create", topic),
        ("body-rule.update", topic),
        ("body-rule.delete", topic),
        ("body-schema.delete", "avro"),
    ]


def test_pages_upload_create_edit_and_delete(page: Client, topic: str) -> None:
    file = SimpleUploadedFile("order.desc", order_set())
    given = {"name": "shop", "format": "protobuf", "content": file}
    assert page.post(f"{PAGE}upload/", given).status_code == 302
    assert "shop.v1.Refund" in html(page, f"{PAGE}schema/shop/")
    rule = {"topic": topic, **ORDER, "framing": "raw"}
    refused = page.post(f"{PAGE}rules/create/", rule | {"type_name": "shop.Order"})
    assert refused.status_code == 422
    assert "no such type" in refused.content.decode()
    assert page.post(f"{PAGE}rules/create/", rule).status_code == 302
    assert topic in html(page, PAGE)
    number = BodyRule.objects.get().pk
    edited = page.post(f"{PAGE}rules/{number}/", rule | {"framing": "confluent"})
    assert edited.status_code == 302
    assert BodyRule.objects.get().framing == "confluent"
    assert "Delete schema" not in html(page, f"{PAGE}schema/shop/")
    assert page.post(f"{PAGE}rules/{number}/", {"delete": ""}).status_code == 302
    assert page.post(f"{PAGE}schema/shop/", {"delete": ""}).status_code == 302
    assert not BodySchema.objects.exists()


def test_writing_needs_the_permission_of_the_resource(db: None, local: Any) -> None:
    assert upload(Api(member("viewer", "schemas:read"))).status_code == 403
    keeper = Api(member("keeper", "schemas:write"))
    assert upload(keeper).status_code == 200
    assert keeper("get", "/messages?topic=orders").status_code == 403


def test_schemas_of_another_cluster_are_not_found(
    api: Api, staff: User, settings: Any, local: Any
) -> None:
    assert upload(api).status_code == 200
    settings.CONSOLE_CLUSTERS |= {"other": local.namesrv_addr}
    other = Client()
    other.force_login(staff)
    assert other.get("/clusters/other/body-schemas/schema/shop/").status_code == 404

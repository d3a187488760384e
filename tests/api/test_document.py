"""The OpenAPI document and its cache."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

PATH = "/api/schema/"
#: Answers with the same schema with and without a dry run.
SAME_WITH_DRY_RUN = {"Bulk", "ReplayCount", "Resumptions", "SentList"}


@pytest.fixture
def generated(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """An item per document that was generated."""
    made: list[str] = []
    generate = SchemaGenerator.get_schema

    def counted(*args: object, **kwargs: object) -> object:
        made.append("document")
        return generate(*args, **kwargs)

    cache.clear()
    monkeypatch.setattr(SchemaGenerator, "get_schema", counted)
    yield made
    cache.clear()


def test_invented_parameters_generate_no_further_document(generated: list[str]) -> None:
    client = Client()
    media = ["*/*", "text/html", "application/x-1", "a/b;q=0.1"]
    answers = [
        client.get(f"{PATH}?x={number}&lang=xx&version={number}", headers={"accept": accept})
        for number, accept in enumerate(media)
    ]
    assert {answer.content for answer in answers} == {client.get(PATH).content}
    assert len(generated) == 1


def test_formats_and_languages_are_served(generated: list[str]) -> None:
    client = Client()
    by_header = client.get(PATH, headers={"accept": "application/json"})
    by_parameter = client.get(f"{PATH}?format=json")
    assert by_header.json() == by_parameter.json()
    assert by_header.json()["openapi"].startswith("3.")
    assert client.get(PATH).content.startswith(b"openapi: 3.")
    assert client.get(f"{PATH}?lang=zh-hans").status_code == 200
    assert len(generated) <= 4


def test_a_dry_run_is_described_where_its_answer_is_another() -> None:
    document = Client().get(PATH, headers={"accept": "application/json"}).json()
    schemas = document["components"]["schemas"]

    def members(schema: dict[str, Any]) -> set[str]:
        if "$ref" in schema:
            return members(schemas[schema["$ref"].rpartition("/")[2]])
        each = (members(one) for one in schema.get("oneOf", ()))
        return set(schema.get("properties", ())).union(*each)

    undescribed = set()
    for operations in document["paths"].values():
        for operation in operations.values():
            named = {each["name"] for each in operation.get("parameters", ())}
            if "dry_run" not in named:
                continue
            schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
            if "dry_run" not in members(schema):
                undescribed.add(schema["$ref"].rpartition("/")[2])
    assert undescribed == SAME_WITH_DRY_RUN

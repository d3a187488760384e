"""Hostile input of every field of the forms: an answer, never a fault, and the input stays."""

from collections.abc import Iterator
from typing import Any

import pytest
from django import forms
from django.contrib.auth.models import User
from django.test import Client

from tests.api.conftest import Api, browser
from tests.api.test_body_schemas import upload
from tests.support.cluster import Cluster

HOME = "/clusters/local"
HOSTILE = (
    "",
    "x" * 10_000,
    "nul\x00byte",
    "two\r\nlines",
    "\u202e\u0430dmin\u200b\uff11",  # from right to left, a Cyrillic letter, no width, a wide digit
    "<script>alert(1)</script>{{ x }}%(y)s{0}",
    "-1",
    "9" * 5_000,
    "1e999",
    "NaN",
)
RULE = {
    "name": "slow", "source": "metric", "metric": "group.lag", "severity": "warning",
    "threshold": "5", "for_s": "0", "clear_for_s": "0", "enabled": "on",
}  # fmt: skip
HOOK = {
    "name": "hook", "kind": "webhook", "url": "https://hooks.example.org/x", "secret": "s",
    "language": "en",
}  # fmt: skip
MAIL = {"name": "mail", "kind": "mail", "recipients": "a@example.org", "language": "en"}
TOKEN = {"name": "deploy", "role": "viewer", "days": "5", "permissions": "topics:read"}
ROLE = {"name": "payments", "description": "pays", "permissions": "topics:read:pay-*"}
MASK = {"name": "cards", "topic": "orders", "kind": "regex", "expression": "[0-9]{16}"}
FORMS: dict[str, list[dict[str, str]]] = {
    f"{HOME}/alarms/rules/create/": [RULE],
    f"{HOME}/alarms/receivers/create/": [HOOK, MAIL],
    f"{HOME}/alarms/silences/": [{"duration_s": "3600", "reason": "moving", "pattern": "a*"}],
    "/accounts/tokens/": [TOKEN],
    "/accounts/roles/create/": [ROLE],
    "/accounts/users/create/": [{"username": "ann", "role": "viewer"}],
    f"{HOME}/definitions/": [{"text": "format: gantry/definitions/1\n"}],
    f"{HOME}/saved-views/": [{"name": "mine", "address": "/clusters/local/topics/"}],
    f"{HOME}/masking/create/": [MASK, {**MASK, "preview": "", "sample": "1"}],
    f"{HOME}/body-schemas/rules/create/": [{"topic": "o", "schema": "shop", "type_name": "x"}],
    f"{HOME}/name-servers/keys/": [{"key": "orders", "value": "broker-a:4", "preview": ""}],
}
#: Widgets whose text is shown again.
KEPT = (forms.TextInput, forms.NumberInput, forms.Textarea, forms.Select)
#: Answers to a form: accepted, shown again, refused. 413: the field is larger than any form.
ANSWERS = {200, 302, 400, 403, 404, 409, 413, 422}


def attacks(valid: dict[str, str], fields: set[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Valid input with one hostile field, and without one field."""
    for name in sorted(fields | valid.keys()):
        for value in HOSTILE:
            yield name, {**valid, name: value}
        yield name, {key: value for key, value in valid.items() if key != name}


def check_kept(answer: Any, form: forms.Form, name: str, sent: dict[str, str]) -> None:
    """A refused form has its input, and an error about it."""
    assert form.errors, name
    for field in form.fields:
        if field in sent and field != name and isinstance(form.fields[field].widget, KEPT):
            assert form[field].value() == sent[field], f"{field} is lost with hostile {name}"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("url", FORMS)
def test_hostile_values_are_answered_and_input_stays(
    url: str, staff: User, local: Cluster, request: pytest.FixtureRequest
) -> None:
    page = browser(staff)
    if "body-schemas" in url:
        upload(Api(staff))
    page.raise_request_exception = False
    fields = set(page.get(url).context["form"].fields)
    refused = 0
    for valid in FORMS[url]:
        for name, sent in attacks(valid, fields):
            answer: Any = page.post(url, sent)
            said = (name, sent.get(name, "absent")[:40], answer.status_code)
            assert answer.status_code in ANSWERS, said
            assert "<script>alert(1)" not in answer.content.decode(), said
            if answer.status_code == 422:
                refused += 1
                check_kept(answer, answer.context["form"], name, sent)
    assert refused or "definitions" in url or "saved" in url


#: Pages with a number of an object in the posted form or in the address.
NUMBERED = {
    f"{HOME}/alarms/silences/": "end",
    f"{HOME}/saved-views/": "remove",
    "/accounts/tokens/": "revoke",
    "/accounts/security/": "end",
}


@pytest.mark.parametrize("url", NUMBERED)
def test_hostile_numbers_of_objects(url: str, staff: User, local: Cluster) -> None:
    page: Client = browser(staff)
    page.raise_request_exception = False
    for value in HOSTILE:
        answer = page.post(url, {NUMBERED[url]: value})
        assert answer.status_code in ANSWERS, (value[:40], answer.status_code)


def test_hostile_documents(staff: User, local: Cluster) -> None:
    """A chain of aliases, deep nesting, huge numbers, duplicates, other types, broken text."""
    page: Client = browser(staff)
    page.raise_request_exception = False
    head = "format: gantry/definitions/1\n"
    laughs = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    for text in (
        f"{head}x: &a0 [x]\n{laughs}",
        head + "topics: " + "[" * 5_000 + "]" * 5_000,
        head + "topics: " + "{a: " * 5_000 + "1" + "}" * 5_000,
        f"{head}topics:\n  orders: {{perm: {'9' * 5_000}}}\n",
        f"{head}topics:\n  orders: {{perm: -1, writeQueueNums: 1e999}}\n",
        f"{head}topics:\n  {'x' * 10_000}: {{perm: 6}}\n",
        f"{head}topics:\n  orders: {{perm: 6}}\n  orders: {{perm: 4}}\n",
        f"{head}topics:\n  \u0430dmin: {{perm: 6}}\n",
        f"{head}topics: 5\ngroups: []\nalarmRules: x\n",
        f"{head}? [a, b]\n: c\n",
        "!!python/object/apply:os.system ['true']\n",
        "\x00\x01",
        "\ufeff" + head,
        "format: gantry/definitions/99999999999999999999\n",
    ):
        answer: Any = page.post(f"{HOME}/definitions/", {"text": text})
        assert answer.status_code in (200, 400), (text[:60], answer.status_code)
        if answer.status_code == 400:
            assert answer.context["form"].errors
            kept = answer.context["form"]["text"].value()
            assert kept == text, "the text stays for a correction"

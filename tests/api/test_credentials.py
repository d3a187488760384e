"""The account that signs the console's requests to a cluster with access control."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from console.audit.models import AuditRow
from console.gateway import gateway
from console.services.clusters.models import ClusterCredentials
from core_broker.client import Credentials
from tests.api.conftest import Api, browser
from tests.api.traffic import poll
from tests.support.cluster import Cluster
from tests.support.secured_cluster import ROOT, secured_cluster

PAGE = "/clusters/local/credentials/"
KEYS = {"access_key": ROOT.access_key, "secret_key": ROOT.secret_key}
WRONG = {**KEYS, "secret_key": "not-the-secret"}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with secured_cluster(tmp_path_factory.mktemp("secured")) as cluster:
        yield cluster


@pytest.fixture
def api(secured: Cluster, staff: User, settings: Settings) -> Api:
    settings.CONSOLE_CLUSTERS = {"local": secured.namesrv_addr}
    return Api(staff)


def test_saved_credentials_sign_and_are_never_returned(api: Api, staff: User) -> None:
    assert api.get("/credentials") == {"signer": None}
    failure = api.get("/topics", status=502)
    assert "username cannot be null" in failure["detail"]

    answer = api("put", "/credentials", KEYS)
    assert answer.status_code == 200, answer.content
    assert [outcome["error"] for outcome in answer.json()["outcomes"]] == [None]
    assert api.get("/topics")["failures"] == []

    signer = api.get("/credentials")["signer"]
    assert (signer["access_key"], signer["is_readable"]) == ("root", True)
    page = browser(staff).get(PAGE).content.decode()
    assert "root" in page
    row = ClusterCredentials.objects.get()
    audit = str(list(AuditRow.house.values()))
    for text in (answer.content.decode(), str(signer), page, row.encrypted, audit):
        assert ROOT.secret_key not in text

    assert api("delete", "/credentials").status_code == 204
    assert api("delete", "/credentials").status_code == 404
    api.get("/topics", status=502)


def test_refused_credentials_are_saved_only_by_force(api: Api) -> None:
    answer = api("put", "/credentials", WRONG)
    assert answer.status_code == 409
    assert "check signature failed" in answer.json()["detail"]
    assert not ClusterCredentials.objects.exists()
    assert api("put", "/credentials?force=true", WRONG).status_code == 200
    api.get("/topics", status=502)


def test_the_page_tries_saves_and_removes(api: Api, staff: User) -> None:
    page = browser(staff)
    refused = page.post(PAGE, WRONG)
    assert refused.status_code == 422
    text = refused.content.decode()
    assert "Save although" in text
    assert "not-the-secret" not in text, "a form does not repeat a password"
    assert page.post(PAGE, KEYS).status_code == 302
    assert api.get("/topics")["failures"] == []
    assert "cannot be read again" in page.post(PAGE, {"remove": ""}).content.decode()
    assert ClusterCredentials.objects.exists()
    assert page.post(PAGE, {"removed": ""}).status_code == 302
    assert not ClusterCredentials.objects.exists()


def test_another_secret_key_is_reported_and_nothing_is_signed(
    api: Api, staff: User, settings: Settings
) -> None:
    api("put", "/credentials", KEYS)
    settings.SECRET_KEY = "another key of the console"
    gateway.close()
    api = Api(staff)
    api.get("/topics", status=502)
    assert api.get("/credentials")["signer"]["is_readable"] is False
    assert "cannot be decrypted" in browser(staff).get(PAGE).content.decode()
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY, "x"]
    assert api.get("/credentials")["signer"]["is_readable"] is False


def test_a_secret_copied_to_another_row_does_not_sign(api: Api) -> None:
    api("put", "/credentials", KEYS)
    ClusterCredentials.objects.update(access_key="somebody-else")
    assert api.get("/credentials")["signer"]["is_readable"] is False


def test_a_file_of_the_environment_takes_precedence(
    api: Api, staff: User, settings: Settings, tmp_path: Path
) -> None:
    api("put", "/credentials?force=true", WRONG)
    file = tmp_path / "tools.yml"
    file.write_text(f"accessKey: {ROOT.access_key}\nsecretKey: {ROOT.secret_key}\n")
    found = Credentials.from_file(file)
    settings.CONSOLE_CLUSTER_CREDENTIALS = {"local": found}
    gateway.close()
    assert api.get("/topics")["failures"] == []
    assert api.get("/credentials")["signer"]["from_environment"] is True
    refused = api("put", "/credentials", KEYS)
    assert refused.status_code == 409
    assert "CONSOLE_CLUSTER_CREDENTIALS" in refused.json()["detail"]
    page: Client = browser(staff)
    assert "CONSOLE_CLUSTER_CREDENTIALS" in page.get(PAGE).content.decode()
    assert page.post(PAGE, KEYS).status_code == 422


def test_a_message_sent_by_the_console_is_signed(api: Api) -> None:
    api("put", "/credentials", KEYS)
    body = {"name": "Signed", "write_queues": 1, "read_queues": 1}
    created = api("post", "/topics", body)
    assert created.status_code == 201, created.content
    for trace in (False, True):
        sent = api("post", "/messages", {"topic": "Signed", "body": "hello", "trace": trace})
        assert sent.status_code in (200, 201), sent.content
    traced = poll(lambda: api.get("/messages?topic=RMQ_SYS_TRACE_TOPIC")["items"])
    assert len(traced) == 1

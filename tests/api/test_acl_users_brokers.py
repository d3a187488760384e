"""Users of access control on several brokers: differences, partial changes, slaves, refusals."""

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from console.gateway import Refused
from console.gateway.acl_users.refusals import explained
from console.gateway.processes import NoAccessControl
from core_broker.errors import RequestRefused
from core_broker.remoting.codes import ResponseCode
from tests.api.conftest import Api, browser
from tests.api.traffic import Traffic, poll
from tests.support.cluster import Cluster, Program
from tests.support.secured_cluster import ROOT, further_broker, secured_cluster

PAGES = "/clusters/local/acl-users"
USERS = "/acl-users"
NOWHERE = "127.0.0.1:1"
PUB = {"resource": "Topic:a", "actions": ["Pub"], "decision": "Allow"}
SUB = {"resource": "Topic:a", "actions": ["Sub"], "decision": "Allow"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with secured_cluster(tmp_path_factory.mktemp("secured")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def broker_b(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder = tmp_path_factory.mktemp("further") / "b"
    with further_broker(cluster, folder, broker_name="broker-b") as broker:
        yield broker


@pytest.fixture
def api(cluster: Cluster, broker_b: Program, staff: User, settings: Settings) -> Api:
    api = signed_api(cluster, staff, settings)
    poll(lambda: brokers(api, ROOT.access_key) == ["broker-a", "broker-b"])
    return api


def signed_api(cluster: Cluster, staff: User, settings: Settings) -> Api:
    """The API of an administrator, whose requests to the cluster are signed as ROOT."""
    settings.CONSOLE_CLUSTERS = {"local": cluster.namesrv_addr}
    settings.CONSOLE_CLUSTER_CREDENTIALS = {"local": ROOT}
    return Api(staff)


def row(api: Api, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in api.get(USERS)["items"] if each["name"] == name)
    return found


def brokers(api: Api, name: str) -> list[str]:
    found: list[str] = row(api, name)["brokers"]
    return found


def test_differences_between_brokers_are_shown_and_removed(api: Api, staff: User) -> None:
    page = browser(staff)
    given = {"name": "amy", "password": "the same", "entries": [PUB]}
    assert api("post", USERS, {**given, "brokers": ["broker-a"]}).status_code == 201
    assert row(api, "amy")["missing_on"] == ["broker-b"]
    assert "No such user on broker-b" in page.get(f"{PAGES}/amy/").content.decode()
    assert api("post", USERS, given).status_code == 409
    assert api("post", USERS, {**given, "brokers": ["broker-b"]}).status_code == 201
    assert row(api, "amy")["drift"] is False

    change = {"entries": [SUB], "brokers": ["broker-b"]}
    answer = api("patch", f"{USERS}/amy", change)
    assert [each["broker"] for each in answer.json()["outcomes"]] == ["broker-b"]
    assert row(api, "amy")["drift"] is True
    shown = page.get(f"{PAGES}/amy/").content.decode()
    assert "Allow Pub" in shown
    assert "Allow Sub" in shown
    assert api("patch", f"{USERS}/amy", {"entries": [SUB]}).status_code == 200
    assert row(api, "amy")["drift"] is False
    assert api("delete", f"{USERS}/amy").status_code == 200


def test_a_slave_follows_the_master(staff: User, settings: Settings, tmp_path: Path) -> None:
    # Gantry's brokers are masters: another master, of no cluster, is registered as a slave.
    with (
        secured_cluster(tmp_path) as cluster,
        further_broker(cluster, tmp_path / "s", namesrv_addr=NOWHERE) as slave,
        closing(Traffic(cluster.namesrv_addr, cluster.broker_addr)) as traffic,
        traffic.registered("broker-a", f"127.0.0.1:{slave.port('remoting')}", broker_id=1),
    ):
        api = signed_api(cluster, staff, settings)
        poll(lambda: brokers(api, ROOT.access_key) == ["broker-a", "broker-a:1"])
        assert api("post", USERS, {"name": "ben", "entries": [PUB]}).status_code == 201
        assert brokers(api, "ben") == ["broker-a", "broker-a:1"]
        assert api("patch", f"{USERS}/ben", {"user_status": "disable"}).status_code == 200
        configs = api.get(f"{USERS}/ben")["configs"]
        assert [each["user_status"] for each in configs] == ["disable"] * 2
        assert api("delete", f"{USERS}/ben").status_code == 200
        assert api("get", f"{USERS}/ben").status_code == 404


def test_a_cluster_that_checks_no_entries_says_so(
    staff: User, settings: Settings, tmp_path: Path
) -> None:
    with secured_cluster(tmp_path, authorization_enabled=False) as cluster:
        api = signed_api(cluster, staff, settings)
        assert api.get(USERS)["unenforced_on"] == ["broker-a"]
        assert "have no effect" in browser(staff).get(f"{PAGES}/").content.decode()


def test_a_deletion_reports_a_broker_that_is_down(
    staff: User, settings: Settings, tmp_path: Path
) -> None:
    with (
        secured_cluster(tmp_path) as cluster,
        further_broker(cluster, tmp_path / "b", broker_name="broker-b") as dying,
    ):
        api = signed_api(cluster, staff, settings)
        poll(lambda: brokers(api, ROOT.access_key) == ["broker-a", "broker-b"])
        assert api("post", USERS, {"name": "cat"}).status_code == 201
        dying.kill()
        answer = api("delete", f"{USERS}/cat")
    assert answer.status_code == 207, answer.content
    errors = {each["broker"]: each["error"] is None for each in answer.json()["outcomes"]}
    assert errors == {"broker-a": True, "broker-b": False}


@pytest.mark.parametrize(
    ("code", "remark"),
    [
        (ResponseCode.REQUEST_CODE_NOT_SUPPORTED, " request type 3005 not supported"),
        (ResponseCode.SYSTEM_ERROR, "An system error occurred, please try again later."),
    ],
)
def test_brokers_without_users_are_explained(code: ResponseCode, remark: str) -> None:
    refuse = partial(Refused, RequestRefused(code, remark))
    with pytest.raises(NoAccessControl) as raised, explained():
        raise refuse()
    assert "ACL" in str(raised.value.hint) or "authenticationEnabled" in str(raised.value.hint)


def test_other_refusals_lead_to_the_credentials() -> None:
    with pytest.raises(Refused) as raised, explained():
        raise Refused(RequestRefused(ResponseCode.NO_PERMISSION, "check signature failed."))
    assert "Credentials" in str(raised.value.hint)

"""Brokers' settings: compared, changed with a difference shown before, undone; no secret shown."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from console.gateway.brokers.secrets import HIDDEN, shown
from console.gateway.brokers.settings import CHANGEABLE, DEFAULTS, Setting
from console.resources.models import Change
from tests.api.conftest import Api
from tests.api.traffic import poll
from tests.support.cluster import SMALL_STORE, Cluster, Program, free_broker_port

HOME = "/clusters/local"
KEY = "fileReservedTime"


@pytest.fixture
def second(local: Cluster, tmp_path: Path) -> Iterator[str]:
    """A second broker of the cluster with one different setting."""
    broker = Program("core_broker", tmp_path)
    broker.start(
        {
            "broker_name": "broker-b",
            "broker_ip1": "127.0.0.1",
            "bind_address": "127.0.0.1",
            "listen_port": free_broker_port(),
            "http_port": 0,
            "file_reserved_time": 24,
            "namesrv_addr": local.namesrv_addr,
            "store_path_root_dir": tmp_path / "store",
            "wait_time_mills_in_send_queue": 20_000,
            **SMALL_STORE,
        }
    )
    yield "broker-b"
    broker.stop()


def differing(api: Api) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = api.get("/broker-settings?show=differing")["items"]
    return items


@pytest.mark.must_beat(37)
def test_two_brokers_with_one_differing_key_and_its_undo(
    api: Api, page: Client, second: str
) -> None:
    (found,) = poll(lambda: [one for one in differing(api) if second in one["values"]])
    assert found["name"] == KEY
    assert found["values"] == {"broker-a": "72", "broker-b": "24"}
    assert (found["default"], found["changeable"]) == ("72", True)
    assert "Hours" in found["meaning"]
    assert [one["name"] for one in differing(api)] == [KEY], "one row"
    text = page.get(f"{HOME}/broker-settings/?show=differing").content.decode()
    assert "broker-b" in text

    body = {"settings": {KEY: "72"}, "brokers": [second]}
    dry = api("patch", "/broker-settings?dry_run=true", body).json()
    assert dry["changes"] == [{"broker": second, "field": KEY, "before": "24", "after": "72"}]
    assert len(differing(api)) == 1
    url = f"{HOME}/broker-settings/{KEY}/"
    form = {"value": "72", "brokers": [second]}
    shown_page = page.post(url, {**form, "preview": ""})
    assert "<del>24</del>" in shown_page.content.decode()
    etag = api("get", "/broker-settings").headers["ETag"].strip('"')
    assert page.post(url, {**form, "save": "", "etag": etag}).status_code == 302
    assert not differing(api)
    change = Change.objects.get(name=KEY)
    assert change.by == "staff"
    assert page.post(f"{url}undo/{change.pk}/").status_code == 302
    assert [one["values"][second] for one in differing(api)] == ["24"]
    stale = api("patch", "/broker-settings", body, **{"If-Match": '"stale"'})
    assert stale.status_code == 412


def test_only_what_may_change_and_what_the_broker_takes(api: Api, page: Client) -> None:
    for key in ("brokerName", "storePathRootDir", "rocketmqHome", "no-such-key"):
        answer = api("patch", "/broker-settings", {"settings": {key: "x"}})
        assert answer.status_code == 409, key
    answer = api("patch", "/broker-settings", {"settings": {KEY: "soon"}})
    assert answer.status_code == 502
    assert KEY in answer.json()["detail"]
    assert api.get(f"/broker-settings?q={KEY}")["items"][0]["values"] == {"broker-a": "72"}
    assert page.get(f"{HOME}/broker-settings/brokerName/").status_code == 409
    assert page.get(f"{HOME}/broker-settings/none/").status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"settings": {}},
        {"settings": []},
        {"settings": {"k": None}},
        {"settings": {"k": "x" * 5_000}},
        {"settings": {"k" * 300: "x"}},
        {"settings": {str(number): "" for number in range(101)}},
    ],
)
def test_bodies_that_make_no_sense(api: Api, body: Any) -> None:
    assert api("patch", "/broker-settings", body).status_code == 400


def test_secrets_are_hidden_and_never_changed_from_here() -> None:
    assert shown({"tlsKeyPassword": "abc", "secretKey": "", "a": "b"}) == {
        "a": "b",
        "secretKey": "",
        "tlsKeyPassword": HIDDEN,
    }
    assert Setting("aclSecretKey", {}, None).secret
    assert not Setting("aclSecretKey", {}, None).changeable


def test_defaults_do_not_tell_about_the_machine_the_console_runs_on() -> None:
    assert KEY in CHANGEABLE
    assert "brokerIP1" not in DEFAULTS
    assert DEFAULTS[KEY] == "72"

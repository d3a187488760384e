"""A name server with users: what each request code needs, over a real socket."""

import json
import stat
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.auth.acl2.demands import Demand, Mode, Unreadable
from core_broker.auth.contracts import Action, Request, ResourceKind
from core_broker.client import AclRpcHook
from core_broker.config import NamesrvConfig
from core_broker.errors import SettingsError, StoreCorrupt
from core_broker.remoting.bodies import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo, encode_body
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import LanguageCode, RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from namesrv.demands import demands_of
from namesrv.server import NameServer

INIT = json.dumps({"username": "root", "password": "secret-of-root"})
CODES = {
    "super": (103, 104, 322),
    "Get": (101, 106, 206, 219, 304, 311, 312, 313, 319, 3004, 3005, 3009, 3010),
    "Update": (100, 102, 205, 318, 327, 3001, 3002, 3003, 3006, 3007, 3008),
    "fields": (105, 216, 224),
}
CLUSTER = "DefaultCluster"


def request(code: int, **fields: str) -> Request:
    return Request(code, 401, LanguageCode.JAVA, fields, b"")


def demands(code: int, **fields: str) -> tuple[Demand, ...] | None:
    return demands_of(request(code, **fields), CLUSTER, Mode.STRICT)


def secured(config: NamesrvConfig, **settings: object) -> NamesrvConfig:
    values: dict[str, object] = {
        "authentication_enabled": True,
        "authorization_enabled": True,
        "init_authentication_user": INIT,
        "config_store_path": str(Path(config.kv_config_path).with_name("namesrv.properties")),
    }
    return replace(config, **(values | settings))  # type: ignore[arg-type]


def test_every_request_code_of_the_name_server_is_in_the_matrix(config: NamesrvConfig) -> None:
    """A new code without a decision about its permission fails here."""
    server = NameServer(secured(config))
    assert sorted(sum(CODES.values(), ())) == sorted(server.request_codes)


@pytest.mark.parametrize("action", ["Get", "Update"])
def test_administration_needs_an_action_on_the_cluster(action: str) -> None:
    for code in CODES[action]:
        assert demands(code) == (Demand(ResourceKind.CLUSTER, CLUSTER, (Action(action),)),)


def test_registrations_and_unknown_codes_need_a_super_user() -> None:
    assert [demands(code, topic="T", cluster="c") for code in (*CODES["super"], 0, -1, 999)] == (
        [None] * 6
    )


def test_a_route_needs_an_action_on_its_topic() -> None:
    uses = (Action.PUB, Action.SUB, Action.GET)
    assert demands(105, topic="T") == (Demand(ResourceKind.TOPIC, "T", uses),)
    assert demands(105, topic="%RETRY%g") == (Demand(ResourceKind.GROUP, "g", uses),)
    assert demands(105, topic="TBW102") == ()
    assert demands(216, topic="T") == (Demand(ResourceKind.TOPIC, "T", (Action.DELETE,)),)
    assert demands(224, cluster="c") == (Demand(ResourceKind.CLUSTER, "c", (Action.GET,)),)


@pytest.mark.parametrize("code", CODES["fields"])
@given(fields=st.dictionaries(st.text(max_size=8) | st.just("topic"), st.just("")))
def test_a_request_without_its_field_is_unreadable(code: int, fields: dict[str, str]) -> None:
    with pytest.raises(Unreadable):
        demands(code, **fields)


@pytest.fixture
async def server(config: NamesrvConfig) -> AsyncIterator[NameServer]:
    started = NameServer(secured(config))
    await started.start()
    yield started
    await started.stop()


@pytest.fixture
async def remoting(server: NameServer) -> AsyncIterator[RemotingClient]:
    client = RemotingClient(name="test")
    yield client
    await client.close()


class Sender:
    """Sends requests of one user; signed with `password`, unsigned without a name."""

    def __init__(
        self, remoting: RemotingClient, server: NameServer, name: str = "", password: str = ""
    ) -> None:
        self._remoting = remoting
        self._addr = f"127.0.0.1:{server.port}"
        self._hook = AclRpcHook(name, password or f"secret-of-{name}") if name else None

    async def __call__(
        self, code: int, fields: dict[str, str] | None = None, body: bytes = b""
    ) -> RemotingCommand:
        command = RemotingCommand.request(code, fields or {}, body)
        if self._hook is not None:
            self._hook.before_request(self._addr, command)
        return await self._remoting.invoke(self._addr, command, 10_000)


async def make_user(root: Sender, name: str, *resources: str, actions: str) -> None:
    user = encode_body(UserInfo(username=name, password=f"secret-of-{name}"))
    assert (await root(3001, {"username": name}, user)).code == ResponseCode.SUCCESS
    entries = [
        PolicyEntryInfo(resource=resource, actions=actions.split(","), decision="Allow")
        for resource in resources
    ]
    body = encode_body(AclInfo(policies=[PolicyInfo(entries=entries)]))
    answer = await root(3006, {"subject": f"User:{name}"}, body)
    assert answer.code == ResponseCode.SUCCESS


FIELDS = {"topic": "T", "cluster": "c", "namespace": "n", "key": "k", "value": "v"}
FIELDS |= {"brokerName": "b", "brokerAddr": "127.0.0.1:1", "clusterName": "c", "username": "x"}


@pytest.mark.parametrize("sender", ["unsigned", "unknown", "forged", "alice"])
async def test_a_refused_request_changes_nothing(
    server: NameServer, remoting: RemotingClient, config: NamesrvConfig, sender: str
) -> None:
    """Every code, by nobody, by an unknown name, with a wrong key, and without permission."""
    root = Sender(remoting, server, "root")
    await make_user(root, "alice", "Topic:Other", "Cluster:Another", actions="All")
    senders = {
        "unsigned": Sender(remoting, server),
        "unknown": Sender(remoting, server, "mallory"),
        "forged": Sender(remoting, server, "root", "guessed"),
        "alice": Sender(remoting, server, "alice"),
    }
    send = senders[sender]
    users = Path(config.kv_config_path).with_name("auth.json").read_bytes()
    for code in sum(CODES.values(), ()):
        answer = await send(code, FIELDS, b'{"username":"x","password":"y"}')
        assert answer.code == ResponseCode.NO_PERMISSION, (code, answer.remark)
        assert not answer.body
    assert (server.routes.live, server.routes.topics) == ({}, {})
    assert Path(config.kv_config_path).with_name("auth.json").read_bytes() == users
    assert not Path(config.kv_config_path).exists()
    assert (await root(101, {"namespace": "n", "key": "k"})).code == ResponseCode.QUERY_NOT_FOUND
    refused = server.varz()["access_control"]["refused"]
    assert sum(refused.values()) == sum(map(len, CODES.values()))


async def test_each_user_has_what_the_list_allows(
    server: NameServer, remoting: RemotingClient
) -> None:
    root = Sender(remoting, server, "root")
    await make_user(root, "reader", "Cluster:DefaultCluster", actions="Get")
    await make_user(root, "admin", "Cluster:DefaultCluster", actions="Update")
    await make_user(root, "seller", "Topic:T", actions="Pub")
    reader, admin, seller = (Sender(remoting, server, n) for n in ("reader", "admin", "seller"))
    no, yes = ResponseCode.NO_PERMISSION, ResponseCode.SUCCESS
    for send, cluster_info, put_value, route in (
        (reader, yes, no, no),
        (admin, no, yes, no),
        (seller, no, no, ResponseCode.TOPIC_NOT_EXIST),
        (root, yes, yes, ResponseCode.TOPIC_NOT_EXIST),
    ):
        assert (await send(106)).code == cluster_info
        assert (await send(100, FIELDS)).code == put_value
        assert (await send(105, {"topic": "T"})).code == route
        assert (await send(105, {"topic": "TBW102"})).code == ResponseCode.TOPIC_NOT_EXIST


async def test_the_answered_settings_have_no_secrets(
    server: NameServer, remoting: RemotingClient, config: NamesrvConfig
) -> None:
    root = Sender(remoting, server, "root")
    body = (await root(RequestCode.GET_NAMESRV_CONFIG)).body
    assert b"initAuthenticationUser=***" in bytes(body)
    assert b"secret-of-root" not in bytes(body)
    answer = await root(RequestCode.UPDATE_NAMESRV_CONFIG, {}, b"orderMessageEnable=true")
    assert answer.code == ResponseCode.SUCCESS
    file = Path(config.kv_config_path).with_name("namesrv.properties")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    off = b"authenticationEnabled=false"
    assert (await root(RequestCode.UPDATE_NAMESRV_CONFIG, {}, off)).code != ResponseCode.SUCCESS
    assert (await Sender(remoting, server)(106)).code == ResponseCode.NO_PERMISSION


@pytest.mark.parametrize("content", ["", "{", '{"users":{"a":{"username":"b","password":"p"}}}'])
async def test_damaged_users_stop_the_start(config: NamesrvConfig, content: str) -> None:
    file = Path(config.kv_config_path).with_name("auth.json")
    file.parent.mkdir()
    file.write_text(content)
    with pytest.raises(StoreCorrupt, match=r"auth\.json"):
        await NameServer(secured(config)).start()
    assert file.read_text() == content


async def test_users_that_cannot_be_stored_stop_the_start(config: NamesrvConfig) -> None:
    Path(config.kv_config_path).with_name("auth.json").mkdir(parents=True)
    with pytest.raises(SettingsError, match=r"auth\.json"):
        await NameServer(secured(config)).start()


def test_authorization_needs_authentication(config: NamesrvConfig) -> None:
    with pytest.raises(SettingsError, match="authenticationEnabled=true"):
        NameServer(secured(config, authentication_enabled=False))

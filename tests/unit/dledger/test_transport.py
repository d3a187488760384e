"""Requests between members over sockets: with TLS, without, and refused connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from core_broker.config import BrokerConfig
from core_broker.config.peer_list import PeerAddress
from core_broker.dledger.messages import (
    AnyRequest,
    HeartbeatRequest,
    Response,
)
from core_broker.dledger.peers import Group
from core_broker.dledger.transport import Token, Transport
from tests.support.certificates import Authority
from tests.support.cluster import free_broker_port
from tests.support.stores import store_config

ANSWER_S = 60.0


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def secured(tmp_path: Path, authority: Authority) -> BrokerConfig:
    """A member that speaks TLS only, and trusts certificates of the authority."""
    pair = authority.issue("member")
    return config(
        tmp_path,
        d_leger_tls_enable=True,
        tls_server_mode="enforcing",
        tls_server_cert_path=pair.cert,
        tls_server_key_path=pair.key,
        tls_client_auth_server=True,
        tls_client_trust_cert_path=authority.pair.cert,
    )


def config(folder: Path, **settings: Any) -> BrokerConfig:
    return store_config(folder, ha_bind_address="127.0.0.1", **settings)


@asynccontextmanager
async def pair_of(asking: BrokerConfig, asked: BrokerConfig) -> AsyncIterator["Pair"]:
    members = {name: PeerAddress(name, "127.0.0.1", free_broker_port()) for name in ("n0", "n1")}
    pair = Pair(members, asking, asked)
    await pair.asked.start()
    try:
        yield pair
    finally:
        await pair.asking.close()
        await pair.asked.close()


class Pair:
    """A member n0 that asks, and a member n1 that answers each request."""

    def __init__(
        self, members: dict[str, PeerAddress], asking: BrokerConfig, asked: BrokerConfig
    ) -> None:
        def answer(request: AnyRequest, token: Token) -> None:
            self.asked.answer(token, Response(group="g", term=7))

        self.asking = Transport(Group("g", "n0", 0, members), asking, answer, lambda leader: None)
        self.asked = Transport(Group("g", "n1", 1, members), asked, answer, lambda leader: None)

    async def answer(self) -> Response | None:
        """Ask n1; None without an answer."""
        came: asyncio.Future[Response | None] = asyncio.get_running_loop().create_future()
        request = HeartbeatRequest(group="g", leader_id="n0", remote_id="n1", term=7)
        self.asking.ask("n1", request, Response, came.set_result)
        async with asyncio.timeout(ANSWER_S):
            return await came


async def test_members_speak_tls(secured: BrokerConfig) -> None:
    async with pair_of(secured, secured) as pair:
        found = await pair.answer()
    assert found is not None
    assert found.term == 7


async def test_a_member_without_tls_is_refused(secured: BrokerConfig, tmp_path: Path) -> None:
    async with pair_of(config(tmp_path), secured) as pair:
        assert await pair.answer() is None


async def test_a_member_with_a_certificate_of_nobody_is_not_asked(
    secured: BrokerConfig, tmp_path: Path
) -> None:
    pair = Authority(tmp_path / "stranger", "another CA").issue("member")
    forged = {"tls_server_cert_path": pair.cert, "tls_server_key_path": pair.key}
    async with pair_of(secured, config(tmp_path, **forged)) as members:
        assert await members.answer() is None


@pytest.mark.parametrize("mode", ["permissive", "enforcing"])
async def test_members_of_rocketmq_connect_without_tls(
    secured: BrokerConfig, tmp_path: Path, mode: str
) -> None:
    """As long as dLegerTlsEnable is not set, whatever mode the broker's other ports have."""
    files = {
        "tls_server_cert_path": secured.tls_server_cert_path,
        "tls_server_key_path": secured.tls_server_key_path,
    }
    asked = config(tmp_path, tls_server_mode=mode, **files)
    for asking in (config(tmp_path), secured):
        async with pair_of(asking, asked) as pair:
            assert await pair.answer() is not None

"""Access control lists that a console reads repeatedly are decoded once; no password is kept."""

from typing import Any

from core_broker.client.admin import AdminClient
from core_broker.definitions.cluster import Brokers, read_tables
from core_broker.remoting.bodies import AclInfo, UserInfo, encode_body
from core_broker.remoting.codes import RequestCode as Code
from core_broker.remoting.command import RemotingCommand
from tests.support.scripted_peer import ScriptedPeer

BOTH = [AclInfo(subject="User:alice", policies=[]), AclInfo(subject="User:bob", policies=[])]


def answering(peer: ScriptedPeer, code: Code, body: Any) -> None:
    peer.on(code, lambda _: RemotingCommand.response(body=encode_body(body) if body else b""))


async def test_equal_answers_are_the_same_lists() -> None:
    async with ScriptedPeer() as peer, AdminClient(None, shares_tables=True) as admin:
        answering(peer, Code.AUTH_LIST_ACL, BOTH)
        first = await admin.acls(peer.addr)
        assert first == BOTH
        answering(peer, Code.AUTH_LIST_ACL, BOTH[1:])
        assert await admin.acls(peer.addr, "User:bob") == BOTH[1:]
        assert await admin.acls(peer.addr, "", "Topic:x") == BOTH[1:]
        answering(peer, Code.AUTH_LIST_ACL, BOTH)
        assert await admin.acls(peer.addr) is first, "filtered lists replace nothing"
        answering(peer, Code.AUTH_LIST_ACL, BOTH[:1])
        assert await admin.acls(peer.addr) == BOTH[:1]
        answering(peer, Code.AUTH_LIST_ACL, None)
        assert await admin.acls(peer.addr) == []


async def test_other_clients_get_lists_of_their_own() -> None:
    async with ScriptedPeer() as peer, AdminClient(None) as admin:
        answering(peer, Code.AUTH_LIST_ACL, BOTH)
        first = await admin.acls(peer.addr)
        assert await admin.acls(peer.addr) is not first


async def test_kept_definitions_have_no_passwords() -> None:
    alice = UserInfo(username="alice", password="secret-of-alice", user_type="Normal")
    async with ScriptedPeer() as peer, AdminClient(None, shares_tables=True) as admin:
        answering(peer, Code.AUTH_LIST_USER, [alice])
        brokers = Brokers({"broker-a": [peer.addr]}, frozenset())
        tables = await read_tables(admin, brokers, ["users"])
        [user] = tables.answers["users"]["broker-a"]
        assert (user.username, user.user_type, user.password) == ("alice", "Normal", None)

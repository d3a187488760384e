"""mqadmin's commands for users and access control lists, against scripted brokers."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from core_broker.mqadmin.users import HIDDEN
from core_broker.remoting.bodies import (
    AclInfo,
    PolicyEntryInfo,
    PolicyInfo,
    UserInfo,
    decode_body,
    encode_body,
)
from core_broker.remoting.codes import RequestCode as Code
from core_broker.remoting.command import RemotingCommand
from tests.client.mqadmin_runs import Mqadmin
from tests.support.scripted_peer import ScriptedPeer

USER_HEADER = (
    "#UserName         #Password               #UserType               #UserStatus           "
)
ALICE = UserInfo(username="alice", password="alice-pw", user_type="Super", user_status="enable")
ENTRIES = [
    PolicyEntryInfo(
        resource="Topic:t1", actions=["Pub", "Sub"], source_ips=["10.0.0.0/8"], decision="Allow"
    ),
    PolicyEntryInfo(resource="Group:g*", actions=["Sub"], decision="Deny"),
]
LIST = AclInfo(subject="User:alice", policies=[PolicyInfo(policy_type="Custom", entries=ENTRIES)])
#: The rows that mqadmin of RocketMQ 5.3.3 prints for the list.
ROWS = [
    "#Subject          #PolicyType  #Resource               #Actions              #SourceIp"
    "                 #Decision ",
    "User:alice        Custom      Topic:t1                [Pub, Sub]            [10.0.0.0/8]"
    "              Allow     ",
    "User:alice        Custom      Group:g*                [Sub]                 null"
    "                      Deny      ",
]


@pytest.fixture
def broker() -> Iterator[ScriptedPeer]:
    """A broker with the user alice and her list, on an event loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    peer = ScriptedPeer()
    for code in (*range(3001, 3004), *range(3006, 3009)):
        peer.on(Code(code), lambda _: RemotingCommand.response())
    peer.on(Code.AUTH_GET_USER, lambda asked: found(asked, "username", "alice", ALICE))
    peer.on(Code.AUTH_LIST_USER, lambda asked: found(asked, "filter", "alice", [ALICE]))
    peer.on(Code.AUTH_GET_ACL, lambda asked: found(asked, "subject", "User:alice", LIST))
    peer.on(Code.AUTH_LIST_ACL, lambda asked: found(asked, "subjectFilter", "User:alice", [LIST]))
    try:
        yield asyncio.run_coroutine_threadsafe(peer.__aenter__(), loop).result(10)
    finally:
        asyncio.run_coroutine_threadsafe(peer.__aexit__(None, None, None), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def found(asked: RemotingCommand, field: str, name: str, body: object) -> RemotingCommand:
    """The answer of a broker: no body for another name."""
    matches = asked.ext_fields.get(field, "") in ("", name)
    return RemotingCommand.response(body=encode_body(body) if matches else b"")


def sent_user(broker: ScriptedPeer, code: Code) -> UserInfo:
    (request,) = broker.received(code)
    user = decode_body(UserInfo, request.body)
    assert request.ext_fields["username"] == user.username
    return user


def test_passwords_are_printed_on_request_only(broker: ScriptedPeer) -> None:
    mqadmin, target = Mqadmin(broker.addr), ("-b", broker.addr)
    row = "alice             {:<22}  Super                   enable                "
    for arguments in (("getUser", *target, "-u", "alice"), ("listUser", *target)):
        assert mqadmin.lines(*arguments) == [USER_HEADER, row.format(HIDDEN)]
        assert mqadmin.lines(*arguments, "--showPassword") == [USER_HEADER, row.format("alice-pw")]
        assert mqadmin.document(*arguments)["users"][0]["password"] == HIDDEN
    assert mqadmin.lines("getUser", *target, "-u", "nobody") == []
    assert mqadmin.document("listUser", *target, "-f", "zzz")["users"] == []


def test_changes_of_users(broker: ScriptedPeer, tmp_path: Path) -> None:
    mqadmin, target = Mqadmin(broker.addr), ("-b", broker.addr)
    password = tmp_path / "password"
    password.write_text("from-a-file\nsecond line\n")
    made = mqadmin(
        "createUser", *target, "-u", "bob", "--passwordFile", str(password), "-t", "Normal"
    )
    assert made.stdout == f"create user to {broker.addr} success.\n"
    user = sent_user(broker, Code.AUTH_CREATE_USER)
    assert (user.password, user.user_type, user.user_status) == ("from-a-file", "Normal", None)
    changed = mqadmin("updateUser", *target, "-u", "bob", "-s", "disable")
    assert changed.stdout == f"update user to {broker.addr} success.\n"
    user = sent_user(broker, Code.AUTH_UPDATE_USER)
    assert (user.password, user.user_type, user.user_status) == (None, None, "disable")
    assert "[dry run]" in mqadmin("deleteUser", *target, "-u", "bob", "--dry-run").stdout
    assert not broker.received(Code.AUTH_DELETE_USER)
    deleted = mqadmin("deleteUser", *target, "-u", "bob")
    assert deleted.stdout == f"delete user to {broker.addr} success.\n"
    assert len(broker.received(Code.AUTH_DELETE_USER)) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("updateUser", "-u", "bob"),
        ("updateUser", "-u", "bob", "-t", "Super", "-s", "enable"),
        ("updateUser", "-u", "bob", "-p", "x", "--passwordFile", "y"),
        ("createUser", "-u", "bob", "--passwordFile", "/no/such/file"),
    ],
)
def test_wrong_command_lines_send_nothing(broker: ScriptedPeer, arguments: tuple[str, ...]) -> None:
    Mqadmin(broker.addr)(*arguments, "-b", broker.addr, code=2)
    assert not broker.requests


def test_lists(broker: ScriptedPeer) -> None:
    mqadmin, target = Mqadmin(broker.addr), ("-b", broker.addr)
    assert mqadmin.lines("getAcl", *target, "-s", "User:alice") == ROWS
    assert mqadmin.lines("listAcl", *target) == ROWS
    assert mqadmin.lines("getAcl", *target, "-s", "User:bob") == []
    rule = ("-s", "User:alice", "-r", "Topic:t1, Group:g*", "-a", "Pub,Sub", "-d", "Allow")
    made = mqadmin("createAcl", *target, *rule, "-i", "10.0.0.0/8")
    assert made.stdout == f"create acl to {broker.addr} success.\n"
    (request,) = broker.received(Code.AUTH_CREATE_ACL)
    (policy,) = decode_body(AclInfo, request.body).policies or [PolicyInfo()]
    assert policy.policy_type == "Custom"
    assert [
        (entry.resource, entry.actions, entry.source_ips) for entry in policy.entries or ()
    ] == [
        ("Topic:t1", ["Pub", "Sub"], ["10.0.0.0/8"]),
        ("Group:g*", ["Pub", "Sub"], ["10.0.0.0/8"]),
    ]
    assert mqadmin("updateAcl", *target, *rule).stdout == f"update acl to {broker.addr} success.\n"
    one = ("-s", "User:alice", "-r", "Topic:t1", "--policyType", "Default")
    assert mqadmin("deleteAcl", *target, *one).stdout == f"delete acl to {broker.addr} success.\n"
    (request,) = broker.received(Code.AUTH_DELETE_ACL)
    assert request.ext_fields == {
        "subject": "User:alice",
        "resource": "Topic:t1",
        "policyType": "Default",
    }


def test_copies(broker: ScriptedPeer) -> None:
    mqadmin, brokers = Mqadmin(broker.addr), ("-f", broker.addr, "-t", broker.addr)
    both = f"from {broker.addr} to {broker.addr} success.\n"
    assert mqadmin("copyUser", *brokers).stdout == f"copy user of alice {both}"
    assert sent_user(broker, Code.AUTH_UPDATE_USER) == ALICE
    assert (
        mqadmin("copyAcl", *brokers, "-s", "User:alice").stdout == f"copy acl of User:alice {both}"
    )
    (request,) = broker.received(Code.AUTH_UPDATE_ACL)
    assert decode_body(AclInfo, request.body) == LIST
    broker.on(
        Code.AUTH_GET_USER,
        lambda _: RemotingCommand.response(body=encode_body(UserInfo(username="alice"))),
    )
    refused = mqadmin("copyUser", *brokers, "-u", "alice", code=1)
    assert "returns no password of alice" in refused.stderr
    assert len(broker.received(Code.AUTH_UPDATE_USER)) == 1

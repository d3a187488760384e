"""Signatures of requests: known answers, the signed content, and hidden secrets."""

import logging
import pickle
from collections.abc import AsyncIterator

import pytest

from core_broker.client import AclRpcHook, AdminClient, Message, Producer, PushConsumer
from core_broker.client.acl import content, signature
from core_broker.errors import ClientError
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from tests.support.scripted_peer import ScriptedPeer, stored

HOOK = AclRpcHook("access", "very-secret")


@pytest.fixture
async def peer() -> AsyncIterator[ScriptedPeer]:
    async with ScriptedPeer() as scripted:
        scripted.serve_route(["T"], {"b": scripted.addr})
        scripted.on(RequestCode.SEND_MESSAGE_V2, stored)
        yield scripted


@pytest.mark.parametrize(
    ("secret", "signed", "answer"),
    [
        (b"12345678", b"RocketMQ", "IUc8rrO/0gDch8CjObLQsW2rsiA="),
        (b"sk", b"akALIYUNT1", "muR8IZ3NQmnrdanSw1BasYcVCQg="),
        (b"", b"ALIYUNT1", "LhzDrtB/k0z12a6eQehZG2eEYEA="),
    ],
)
def test_known_signatures(secret: bytes, signed: bytes, answer: str) -> None:
    assert signature(secret, signed) == answer


def test_the_content_is_all_values_by_key_and_the_body() -> None:
    fields = {"topic": "T1", "AccessKey": "ak", "OnsChannel": "ALIYUN", "Signature": "old"}
    assert content(fields, b"") == b"akALIYUNT1"
    assert content(fields, b"\x00\xffbody") == b"akALIYUNT1\x00\xffbody"
    # A key beyond the first plane is a surrogate pair in Java and sorts before U+FFFD.
    assert content({"\ufffd": "2", "\U0001f600": "1"}, b"") == b"12"


def test_a_command_is_signed_as_it_is_sent() -> None:
    command = RemotingCommand.request(105, {"topic": "T1"}, b"")
    AclRpcHook("ak", "sk", "token").before_request("addr", command)
    first = dict(command.ext_fields)
    assert first == {
        "topic": "T1",
        "AccessKey": "ak",
        "SecurityToken": "token",
        "Signature": signature(b"sk", b"aktokenT1"),
    }
    AclRpcHook("ak", "sk", "token").before_request("addr", command)
    assert command.ext_fields == first


async def test_every_request_of_every_client_is_signed(peer: ScriptedPeer) -> None:
    async with Producer("PG", peer.addr, rpc_hooks=[HOOK]) as producer:
        await producer.send(Message("T", b"hi"))
        await producer.send_oneway(Message("T", b"hi"))
    async with AdminClient(peer.addr, rpc_hooks=[HOOK]) as admin:
        await admin.topic_route("T")
    assert len(peer.requests) >= 4
    for request in peer.requests:
        fields = request.ext_fields
        assert fields["AccessKey"] == "access"
        assert fields["Signature"] == signature(b"very-secret", content(fields, request.body))


async def test_the_secret_shows_nowhere(
    peer: ScriptedPeer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with Producer("PG", peer.addr, rpc_hooks=[HOOK]) as producer:
        await producer.send(Message("T", b"hi"))
        texts = [repr(HOOK), str(HOOK), repr(producer), repr(PushConsumer("G", peer.addr))]
    texts += [caplog.text, *(repr(request) for request in peer.requests)]
    assert not any("very-secret" in text for text in texts)
    assert not hasattr(HOOK, "__dict__")
    with pytest.raises(ClientError):
        pickle.dumps(HOOK)


@pytest.mark.parametrize("keys", [("", "secret"), ("access", "")])
def test_both_keys_are_needed(keys: tuple[str, str]) -> None:
    with pytest.raises(ClientError):
        AclRpcHook(*keys)

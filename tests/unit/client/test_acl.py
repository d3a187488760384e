"""Signatures of requests: commands of all clients, and hidden secrets."""

import logging
import pickle
from collections.abc import AsyncIterator

import pytest

from core_broker.auth.signature import SigningKey, signed_fields
from core_broker.client import AclRpcHook, AdminClient, Message, Producer, PushConsumer
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


def test_a_command_is_signed_as_it_is_sent() -> None:
    command = RemotingCommand.request(105, {"topic": "T1"}, b"")
    AclRpcHook("ak", "sk", "token").before_request("addr", command)
    first = dict(command.ext_fields)
    assert first == {
        "topic": "T1",
        "AccessKey": "ak",
        "SecurityToken": "token",
        "Signature": SigningKey("sk").sign(b"aktokenT1"),
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
        content = signed_fields(fields)
        assert fields["Signature"] == SigningKey("very-secret").sign(content, request.body)


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

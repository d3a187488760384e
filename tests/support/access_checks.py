"""Compares the explanations of `mqadmin checkAccess` with the decisions of a broker."""

import asyncio
from collections.abc import Callable
from typing import Any

from core_broker.client import AclRpcHook
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode as Code
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand

#: Returns the JSON document of a command of mqadmin.
Document = Callable[..., Any]


def secret_of(account: str) -> str:
    """The secret key of each account of these tests."""
    return f"secret-of-{account}"


async def refusal(addr: str, account: str, topic: str, group: str = "") -> tuple[int, str]:
    """Code and remark of the broker's refusal of a signed send or pull; 0 and "" when admitted."""
    if group:
        return await refusal_of(addr, account, Code.PULL_MESSAGE, topic=topic, consumerGroup=group)
    return await refusal_of(addr, account, Code.SEND_MESSAGE_V2, a="PG", b=topic)


async def refusal_of(addr: str, account: str, code: Code, **fields: str) -> tuple[int, str]:
    """Code and remark of the broker's refusal of a request; 0 and "" when admitted.

    An admitted request misses fields that the handler needs. The place in Java's source is left
    out of the remark. The request of the account "" is not signed.
    """
    hooks = [AclRpcHook(account, secret_of(account))] if account else []
    client = RemotingClient(name="a client", rpc_hooks=hooks)
    try:
        answer = await client.invoke(addr, RemotingCommand.request(code, fields))
    finally:
        await client.close()
    remark = answer.remark or ""
    if answer.code == ResponseCode.NO_PERMISSION or "AclException" in remark:
        return answer.code, without_place(remark)
    return ResponseCode.SUCCESS, ""


def without_place(remark: str) -> str:
    """A remark without the class and line in Java's source at its end."""
    return remark.partition(", org.apache.")[0]


def check(document: Document, addr: str, account: str, topic: str, *options: str) -> dict[str, Any]:
    """What checkAccess says about a broker and a client on this machine."""
    who = ("-u", account, "-t", topic, "-i", "127.0.0.1")
    (broker,) = document("checkAccess", "-b", addr, *who, *options)["brokers"]
    assert broker["brokerAddr"] == addr
    assert broker["allowed"] == (broker["code"] == ResponseCode.SUCCESS)
    return dict(broker)


def agree(
    document: Document, addr: str, account: str, topic: str, group: str, *options: str
) -> bool:
    """Compare an explanation with the broker's decision; return whether access is allowed."""
    action = ("-a", "Sub", "-g", group) if group else ("-a", "Pub")
    explained = check(document, addr, account, topic, *action, *options)
    decided = asyncio.run(refusal(addr, account, topic, group))
    found = (explained["code"], without_place(explained["remark"]))
    assert found == decided, (account, topic, group)
    return bool(explained["allowed"])

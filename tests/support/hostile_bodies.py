"""Attacks on the event loop by one frame with an expensive body or header.

An attack is a list of frames that one peer sends without waiting.
"""

import json
from collections.abc import Callable, Iterator
from functools import partial
from struct import pack
from typing import NamedTuple

from core_broker.remoting.codes import RequestCode as Code
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import Header

#: Nearly the longest frame.
LONG = 15 * 1024 * 1024
GROUP, TOPIC = "HostileGroup", "HostileTopic"


class Attack(NamedTuple):
    """Frames for one server, made when the attack begins."""

    name: str
    server: str
    frames: Callable[[], list[bytes]]


def frame(code: int, header: Header | dict[str, str] | None = None, body: bytes = b"") -> bytes:
    """A request as a frame."""
    return RemotingCommand.request(code, header, body).encode()


def _raw(header: bytes, body: bytes = b"", kind: int = 0) -> bytes:
    return pack(">II", 4 + len(header) + len(body), kind << 24 | len(header)) + header + body


def to_json(value: object) -> bytes:
    """Compact JSON."""
    return json.dumps(value, separators=(",", ":")).encode()


#: Bodies that are expensive for a parser of JSON, of fastjson's dialect, or of properties.
BODIES: dict[str, Callable[[], bytes]] = {
    "nested arrays": lambda: b"[" * LONG,
    "nested objects": lambda: b'{"a":' * (LONG // 5),
    "numbers": lambda: b"[" + b"1," * (LONG // 2) + b"1]",
    "numbers, lenient": lambda: b"[" + b"1," * (LONG // 2) + b",]",
    "members": lambda: b"{" + b",".join(b'"k%d":%d' % (n, n) for n in range(700_000)) + b"}",
    "members, lenient": lambda: b"{" + b",".join(b"k%d:%d" % (n, n) for n in range(800_000)) + b"}",
    "escapes": lambda: b'{"a":"' + b"\\u0041" * (LONG // 6) + b'"}',
    "escapes, lenient": lambda: b"{a:'" + b"\\u0041" * (LONG // 6) + b"'}",
    "digits": lambda: b"[" + b"1" * LONG + b"]",
    "lines": lambda: b"".join(b"unknown%d=1\n" % n for n in range(20_000)),
    "long line": lambda: b"maxMessageSize=" + b"9" * LONG,
    "backslashes": lambda: b"\\u0041" * (LONG // 6),
    "zeros": lambda: bytes(LONG),
}
#: Requests with a body that is decoded, with the header for the way to the body.
WITH_BODY: dict[str, dict[int, dict[str, str]]] = {
    "broker": {
        Code.UPDATE_BROKER_CONFIG: {},
        Code.HEART_BEAT: {},
        Code.LOCK_BATCH_MQ: {},
        Code.UNLOCK_BATCH_MQ: {},
        Code.CHECK_CLIENT_CONFIG: {},
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: {},
        Code.UPDATE_AND_CREATE_TOPIC_LIST: {},
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: {},
        Code.QUERY_ASSIGNMENT: {},
        Code.SET_GROUP_OFFSETS: {
            "topic": TOPIC,
            "group": GROUP,
            "timestamp": "0",
            "isForce": "true",
        },
        Code.UPDATE_ACCESS_ACCOUNT: {"accessKey": "account1"},
    },
    "namesrv": {
        Code.REGISTER_BROKER: {
            "brokerName": "hostile",
            "brokerAddr": "127.0.0.1:1",
            "clusterName": "c",
            "haServerAddr": "",
            "brokerId": "0",
        },
        Code.QUERY_DATA_VERSION: {
            "brokerName": "hostile",
            "brokerAddr": "127.0.0.1:1",
            "clusterName": "c",
            "brokerId": "0",
        },
        Code.UPDATE_NAMESRV_CONFIG: {},
    },
}


def long_bodies_and_headers() -> Iterator[Attack]:
    """Every body for every request with a body, and long headers."""
    for server, codes in WITH_BODY.items():
        for code, fields in codes.items():
            for name, body in BODIES.items():
                frames = partial(_with_body, code, fields, body)
                yield Attack(f"{int(code)} {name}", server, frames)
    for server in WITH_BODY:
        yield from _headers(server)


def _with_body(code: int, fields: dict[str, str], body: Callable[[], bytes]) -> list[bytes]:
    return [frame(code, fields, body())]


def _headers(server: str) -> Iterator[Attack]:
    def one(name: str, header: Callable[[], bytes], kind: int = 0) -> Attack:
        return Attack(f"header: {name}", server, lambda: [_raw(header(), b"", kind)])

    code = (
        b'{"code":105,"opaque":1,"extFields":'
        if server == "namesrv"
        else b'{"code":30,"extFields":'
    )
    yield one("members", lambda: code + BODIES["members"]() + b"}")
    yield one("nested arrays", lambda: code + b"[" * LONG)
    yield one("long remark", lambda: b'{"code":30,"remark":"' + b"x" * LONG + b'"}')
    yield one("escapes", lambda: code + BODIES["escapes"]() + b"}")
    yield one("unknown member", lambda: b'{"code":30,"x":' + BODIES["numbers"]() + b"}")
    fields = pack(">H", 1) + b"a" + pack(">i", 1) + b"1"
    yield one(
        "binary fields",
        lambda: (
            pack(">hBhii", 30, 0, 409, 1, 0)
            + pack(">i", 0)
            + pack(">i", len(fields) * (LONG // len(fields)))
            + fields * (LONG // len(fields))
        ),
        1,
    )

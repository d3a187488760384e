"""Codes 3001 to 3010 against the answers of RocketMQ 5.3.3, and against hostile bodies."""

import json
import os
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core_broker.auth import users_processor
from core_broker.auth.acl2.bodies import acl_infos
from core_broker.auth.acl2.owner import AccessOwner, with_super_users
from core_broker.auth.acl2.rules import RuleSettings
from core_broker.auth.acl2.stored import decode, encode
from core_broker.auth.acl2.tables import AccessTables
from core_broker.auth.contracts import Request
from core_broker.auth.gate import Gate
from core_broker.auth.user_handlers import user_handlers
from core_broker.client.acl import AclRpcHook
from core_broker.errors import GantryError
from core_broker.processors.context import failure
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.saved_file import SavedFile

ROOT = ("rocketmq", "12345678")
RECORDED = Path(__file__).parent / "users-5.3.3.jsonl"
#: Titles of recorded requests whose answer differs here, with the reason.
DIFFERENT = {
    "alice cluster get by default policy": "a normal user gets no password",
}


class Peer:
    """A connection that keeps the last answer."""

    peer_host = "127.0.0.1"

    def __init__(self) -> None:
        self.last: RemotingCommand | None = None

    def answer(self, request: RemotingCommand, response: RemotingCommand) -> None:
        self.last = response


class Broker:
    """The processor behind a gate, with its file."""

    def __init__(self, folder: Path, *, readable: bool = True) -> None:
        self.gate = Gate()
        self.path = folder / "auth.json"
        tables = with_super_users(AccessTables(), [ROOT])
        rules = RuleSettings("DefaultCluster")
        self.owner = AccessOwner(tables, rules, self.gate.use_acl2)
        self.file = SavedFile(self.path, lambda: encode(self.owner.tables))
        self._handlers = user_handlers(
            self.owner, self.file, self.gate, passwords_readable=readable
        )

    async def ask(
        self,
        code: int,
        fields: dict[str, str],
        body: bytes = b"",
        *,
        user: str | None = ROOT[0],
        password: str = ROOT[1],
    ) -> RemotingCommand:
        request = RemotingCommand.request(code, dict(fields), body)
        if user is not None:
            AclRpcHook(user, password).before_request("", request)
        peer = Peer()
        try:
            self.gate.admit(
                peer.peer_host,
                Request(code, request.version, request.language, request.ext_fields, body),
            )
            answer = self._handlers[code](cast(Connection, peer), request)
        except GantryError as error:
            return failure(error, request)
        if answer is None:
            await self.file.drain()
            answer = peer.last
        assert answer is not None
        return answer


def recorded() -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in RECORDED.read_text().splitlines())


async def test_answers_are_those_of_rocketmq(tmp_path: Path) -> None:
    broker, count = Broker(tmp_path), 0
    for row in recorded():
        sender = {"user": row["user"], "password": row["password"] or ""}
        answer = await broker.ask(row["code"], row["fields"], row["body"].encode(), **sender)
        theirs = row["answer"]
        ours = {"code": answer.code, "remark": answer.remark, "body": answer.body.decode()}
        if theirs["code"] == 1 and ".java:" in theirs["remark"]:
            # The text of a Java exception: only the code is compared.
            assert ours["remark"]
            theirs["remark"] = ours["remark"]
        assert (ours != theirs) == (row["title"] in DIFFERENT), (row["title"], ours, theirs)
        count += 1
    assert count > 100


@pytest.mark.parametrize(
    ("code", "fields", "body", "refusal"),
    [
        # RocketMQ makes a normal user, ignores the status, and makes a Custom entry.
        (3001, {"username": "b"}, {"password": "p", "userType": "Root"}, 29),
        (3001, {"username": "b"}, {"password": "p", "userType": 1}, 1),
        (3002, {"username": "rocketmq"}, {"userStatus": "nonsense"}, 29),
        (3006, {"subject": "User:rocketmq"}, "Other Topic:t Pub", 29),
        # Entries that never match, or match everything; RocketMQ accepts all of them.
        (3006, {"subject": "User:rocketmq"}, "Custom topic Pub", 16),
        (3006, {"subject": "User:rocketmq"}, "Custom Topic: Pub", 16),
        (3006, {"subject": "User:rocketmq"}, "Custom Topic:a*b Pub", 16),
        (3006, {"subject": "User:rocketmq"}, "Custom Any:x Pub", 16),
        (3006, {"subject": "User:rocketmq"}, "Custom Topic:t Pub,Publish", 16),
        # RocketMQ deletes the whole list.
        (3008, {"subject": "User:rocketmq", "resource": "nonsense"}, None, 16),
        # Names that steer terminals and logs, and sizes without limit.
        (3001, {"username": "a\nb"}, {"password": "p"}, 29),
        (3001, {"username": "n" * 256}, {"password": "p"}, 29),
        (3001, {"username": "b"}, {"password": "p" * 1025}, 29),
        (3006, {"subject": "User:rocketmq"}, "Custom Topic:" + "t" * 256 + " Pub", 16),
    ],
)
async def test_stricter_than_rocketmq(
    tmp_path: Path, code: int, fields: dict[str, str], body: Any, refusal: int
) -> None:
    broker = Broker(tmp_path)
    good = acl("Custom Topic:t Pub")
    assert (await broker.ask(3006, {"subject": "User:rocketmq"}, good)).code == 0
    before = broker.owner.tables
    content = acl(body) if isinstance(body, str) else json.dumps(body).encode()
    answer = await broker.ask(code, fields, b"" if body is None else content)
    assert answer.code == refusal
    assert answer.remark
    assert broker.owner.tables is before


def acl(entry: str) -> bytes:
    """The body of a list with one entry: policy type, resource and actions."""
    policy, resource, actions = entry.split(" ")
    entries = [{"resource": resource, "actions": actions.split(","), "decision": "Allow"}]
    return json.dumps({"policies": [{"policyType": policy, "entries": entries}]}).encode()


async def test_changes_survive_a_restart_and_passwords_stay_private(tmp_path: Path) -> None:
    broker = Broker(tmp_path, readable=False)
    await broker.ask(3001, {"username": "alice"}, b'{"password":"secret-a","userStatus":"disable"}')
    assert (
        await broker.ask(3006, {"subject": "User:alice"}, acl("Default Group:g* Sub"))
    ).code == 0
    assert decode(broker.path.read_bytes()) == broker.owner.tables
    for code, fields in ((3004, {"username": "alice"}), (3005, {})):
        answer = await broker.ask(code, fields)
        assert b"alice" in answer.body
        assert b"password" not in answer.body


async def test_a_change_is_in_force_at_once(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    await broker.ask(3001, {"username": "alice"}, b'{"password":"secret-a"}')
    alice = {"user": "alice", "password": "secret-a"}
    assert (await broker.ask(3005, {}, **alice)).code == 16
    await broker.ask(3006, {"subject": "User:alice"}, acl("Custom Cluster:* Get"))
    assert (await broker.ask(3005, {}, **alice)).code == 0
    await broker.ask(3002, {"username": "alice"}, b'{"password":"another"}')
    assert (await broker.ask(3005, {}, **alice)).remark == "check signature failed."
    await broker.ask(3003, {"username": "alice"})
    assert (await broker.ask(3005, {}, **alice)).remark == "User:alice is not found."


async def test_all_lists_are_encoded_once_per_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = await with_alice_and_bob(tmp_path)
    made = Mock(side_effect=acl_infos)

    async def listed(**fields: str) -> dict[str, str]:
        rows = json.loads((await broker.ask(3010, fields)).body or b"[]")
        return {row["subject"]: row["policies"][0]["entries"][0]["resource"] for row in rows}

    monkeypatch.setattr(users_processor, "acl_infos", made)
    both = {"User:alice": "Topic:alices", "User:bob": "Topic:bobs"}
    assert await listed() == await listed() == both
    assert made.call_count == 1
    assert await listed(subjectFilter="bob") == {"User:bob": "Topic:bobs"}
    assert await listed() == both
    await broker.ask(3002, {"username": "bob"}, b'{"password":"another"}')
    assert await listed() == both
    assert made.call_count == 2, "only the filtered lists were made anew"
    await broker.ask(3008, {"subject": "User:bob"})
    assert await listed() == {"User:alice": "Topic:alices"}
    await broker.ask(3006, {"subject": "User:bob"}, acl("Custom Topic:others Pub"))
    assert await listed() == {**both, "User:bob": "Topic:others"}
    monkeypatch.setattr(users_processor, "KEPT_BYTES_MAX", 1)
    await broker.ask(3003, {"username": "alice"})
    assert await listed() == await listed() == {"User:bob": "Topic:others"}
    assert made.call_count == 6, "a body over the limit is not kept"


@pytest.mark.parametrize("code", range(3001, 3011))
async def test_without_access_control_each_code_is_refused(code: int) -> None:
    handler = user_handlers(None, None, None, passwords_readable=False)[code]
    answer = handler(cast(Connection, Peer()), RemotingCommand.request(code))
    assert answer is not None
    assert "authenticationEnabled=false" in (answer.remark or "")


NAMES = st.sampled_from(["username", "password", "userType", "subject", "policies", "policyType"])
NAMES |= st.sampled_from(["entries", "resource", "actions", "decision", "sourceIps", "x"])
WORDS = st.sampled_from(
    ["rocketmq", "alice", "User:alice", "Super", "*", "Topic:*", "All", "Allow"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=6),
    max_leaves=20,
)
BODIES = st.binary(max_size=60) | VALUES.map(lambda value: json.dumps(value).encode())
FIELDS = st.dictionaries(
    st.sampled_from(["username", "subject", "filter", "resource", "policyType", "subjectFilter"]),
    # Errors quote names; hypothesis draws the constants of the source, the root's password too.
    WORDS
    | st.text(st.characters(codec="utf-8"), max_size=8).filter(lambda text: text != "12345678"),
)


@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(code=st.integers(3001, 3010), fields=FIELDS, body=BODIES, as_alice=st.booleans())
async def test_hostile_requests_neither_crash_nor_raise_anybody(
    tmp_path: Path, code: int, fields: dict[str, str], body: bytes, as_alice: bool
) -> None:
    """A normal user with all permissions on the cluster never makes or changes a super user."""
    broker = Broker(tmp_path, readable=False)
    await broker.ask(3001, {"username": "alice"}, b'{"password":"secret-a"}')
    await broker.ask(3006, {"subject": "User:alice"}, acl("Custom Cluster:* All"))
    sender = {"user": "alice", "password": "secret-a"} if as_alice else {}
    before = broker.owner.tables
    answer = await broker.ask(code, fields, body, **sender)
    assert answer.code in (0, 1, 16, 29)
    assert b"12345678" not in answer.body + (answer.remark or "").encode()
    after = broker.owner.tables
    assert decode(encode(after)) == after
    if answer.code != 0:
        assert after is before
    if as_alice:
        assert [user for user in after.users.values() if user.is_super] == [
            user for user in before.users.values() if user.is_super
        ]


# ---- hostile bodies; FUZZ_BODIES and FUZZ_SEED change their number and content -----------------

SEED = int(os.environ.get("FUZZ_SEED", "18"))
MUTATIONS = int(os.environ.get("FUZZ_BODIES", "600"))
MANY_ENTRIES = [
    {"resource": f"Topic:t{n}", "actions": ["Pub"], "decision": "Allow"} for n in range(1_001)
]
LIST = {
    "subject": "User:bob",
    "policies": [
        {
            "policyType": "Custom",
            "entries": [
                {
                    "resource": "Topic:bobs",
                    "actions": ["Pub", "Sub"],
                    "sourceIps": ["10.0.0.0/8", "::1"],
                    "decision": "Allow",
                }
            ],
        }
    ],
}
USER = {
    "username": "bob",
    "password": "secret-of-bob",
    "userType": "Normal",
    "userStatus": "enable",
}
#: Bodies of lists that are refused.
BAD_LISTS: dict[str, bytes] = {
    "10 MB of blanks": b'{"policies":' + b" " * 10_000_000 + b"[]}",
    "10 MB of a name": b'{"subject":"User:' + b"b" * 10_000_000 + b'"}',
    "nested lists": b'{"policies":' + b"[" * 100_000,
    "nested maps": b'{"policies":' * 20_000,
    "many maps": b'{"policies":[' + b"{}," * 80_000 + b"{}]}",
    "many sources": json.dumps(LIST).replace('"::1"', ",".join(['"::1"'] * 256)).encode(),
    "many entries": json.dumps({"policies": [{"entries": MANY_ENTRIES}]}).encode(),
    "a NUL": json.dumps(LIST).replace("bobs", "bo\\u0000bs").encode(),
    "a raw NUL": json.dumps(LIST).replace("bobs", "bo\0bs").encode(),
    "no UTF-8": json.dumps(LIST).encode().replace(b"bobs", b"bo\xff\xfebs"),
    "UTF-16": json.dumps(LIST).encode("utf-16"),
    "policies as map": b'{"policies":{"entries":[]}}',
    "entries as text": b'{"policies":[{"entries":"*"}]}',
    "actions as text": json.dumps(LIST).replace('["Pub", "Sub"]', '"All"').encode(),
    "a number as resource": json.dumps(LIST).replace('"Topic:bobs"', "1e999").encode(),
    "sources as map": json.dumps(LIST).replace('["10.0.0.0/8", "::1"]', '{"a":1}').encode(),
    "an address as name": json.dumps(LIST).replace("::1", "localhost").encode(),
    "a cut body": json.dumps(LIST).encode()[:-9],
}


def damaged(seed: int) -> Iterator[tuple[int, bytes]]:
    """Endless request codes and damaged bodies; equal for equal seeds."""
    chance = random.Random(seed)
    parts = (
        *(b"\0", b"\xff", b'"', b"{", b"}", b"[", b"]", b",", b":", b"null", b"1e999", b"\\u0000"),
        *(b"true", b"-1", b'"*"', b"\\ud800", b"[" * 200, b'"Deny"', b'"x":', b" " * 500),
    )
    while True:
        code = chance.choice((3001, 3002, 3006, 3007))
        body = bytearray(json.dumps(LIST if code >= 3006 else USER).encode())
        for _ in range(chance.randrange(1, 4)):
            begin = chance.randrange(len(body) + 1)
            end = min(len(body), begin + chance.choice((0, 1, 1, 6, 30)))
            body[begin:end] = chance.choice(parts)
        yield code, bytes(body)


async def with_alice_and_bob(folder: Path) -> Broker:
    """Alice may send to her topic, bob may send to his."""
    broker = Broker(folder)
    for name in ("alice", "bob"):
        body = json.dumps({"password": f"secret-of-{name}"}).encode()
        assert (await broker.ask(3001, {"username": name}, body)).code == 0
        entry = acl(f"Custom Topic:{name}s Pub")
        assert (await broker.ask(3006, {"subject": f"User:{name}"}, entry)).code == 0
    return broker


def may_send(broker: Broker, user: str, topic: str, password: str = "") -> bool:
    request = RemotingCommand.request(10, {"topic": topic})
    AclRpcHook(user, password or f"secret-of-{user}").before_request("", request)
    try:
        broker.gate.admit("10.0.0.1", Request.of(request))
    except GantryError:
        return False
    return True


def check_alice(broker: Broker) -> None:
    """Alice has her permission and no other, with her password alone."""
    assert may_send(broker, "alice", "alices")
    assert not may_send(broker, "alice", "bobs")
    assert not may_send(broker, "alice", "alices", "another-secret")
    assert not may_send(broker, "nobody", "alices")


@pytest.mark.parametrize("name", BAD_LISTS)
@pytest.mark.parametrize("code", [3006, 3007])
async def test_a_bad_list_changes_nothing(code: int, name: str, tmp_path: Path) -> None:
    broker = await with_alice_and_bob(tmp_path)
    before = broker.owner.tables
    answer = await broker.ask(code, {"subject": "User:bob"}, BAD_LISTS[name])
    assert answer.code in (1, 16, 29)
    assert 0 < len(answer.remark or "") < 2_000
    assert broker.owner.tables is before
    check_alice(broker)
    assert may_send(broker, "bob", "bobs")
    assert not may_send(broker, "bob", "alices")


async def test_damaged_bodies_change_nobody_else(tmp_path: Path) -> None:
    broker = await with_alice_and_bob(tmp_path)
    refused = 0
    for number, (code, body) in enumerate(islice(damaged(SEED), MUTATIONS)):
        before = broker.owner.tables
        fields = {"subject": "User:bob"} if code >= 3006 else {"username": "bob"}
        try:
            answer = await broker.ask(code, fields, body)
            after = broker.owner.tables
            if answer.code != 0:
                refused += 1
                assert answer.remark
                assert after is before
            changed = {name for name, user in after.users.items() if before.users.get(name) != user}
            assert changed <= {"bob"}
            assert after.users["bob"].is_super == before.users["bob"].is_super
            assert decode(broker.path.read_bytes()) == after
            check_alice(broker)
        except Exception as error:
            raise AssertionError(f"seed {SEED}, body {number}: {code} {body!r}") from error
    assert 0 < refused < MUTATIONS

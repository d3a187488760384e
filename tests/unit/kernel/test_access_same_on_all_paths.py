"""Access control on all paths: equal decisions, and a refused request never reaches the store."""

import json
import random
from pathlib import Path

import pytest

from core_broker.auth.signature import SIGNATURE
from core_broker.fastpath import has_kernel
from core_broker.message.batch import encode_batch
from core_broker.message.model import Message
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.ext_fields import encode_fields
from core_broker.remoting.frames import FrameSplitter
from tests.support.access_rules import PERMITTED, WIRE_ADDRESS, SmallRules, gate_with, signed
from tests.support.broker_requests import pull_header
from tests.support.send_frames import common_case_fields, frame
from tests.support.two_paths import PATHS, Deed, OnePath, Said, played, same

needs_kernel = pytest.mark.skipif(not has_kernel(), reason="the kernel is not compiled here")

TOPICS = (("T", 4), ("Other-Topic", 4))
BODY = b"body"
SEND = RequestCode.SEND_MESSAGE_V2
PULLS = (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE)
COMMIT = RequestCode.UPDATE_CONSUMER_OFFSET


def send(number: int, fields: dict[str, str], body: bytes = BODY, flag: int = 0) -> bytes:
    return frame(fields, body, code=SEND, flag=flag, opaque=number)


def tampered(fields: dict[str, str], **changes: str) -> dict[str, str]:
    return {**fields, **changes}


def answers(told: bytes) -> list[RemotingCommand]:
    return FrameSplitter(1 << 24).feed(told)


FIELDS = common_case_fields(1)
SIGNED = signed(FIELDS, BODY)
REFUSED = {
    "unsigned": (FIELDS, BODY),
    "without a signature": ({**FIELDS, "AccessKey": "alice"}, BODY),
    "of an unknown account": (signed(FIELDS, BODY, "mallory"), BODY),
    "of an account without permission": (signed(FIELDS, BODY, "bob"), BODY),
    "under another name": (tampered(SIGNED, AccessKey="bob"), BODY),
    "with another body": (SIGNED, b"Body"),
    "with an empty body": (SIGNED, b""),
    "to another queue": (tampered(SIGNED, e="2"), BODY),
    "with another property": (tampered(SIGNED, i="KEYS\x01other"), BODY),
    "with an added field": (tampered(SIGNED, zz="1"), BODY),
    "with a wrong signature": (tampered(SIGNED, Signature=SIGNED[SIGNATURE][::-1]), BODY),
    "with a cut signature": (tampered(SIGNED, Signature=SIGNED[SIGNATURE][:-2]), BODY),
    "with a long signature": (tampered(SIGNED, Signature=SIGNED[SIGNATURE] + "A"), BODY),
}


@pytest.mark.parametrize("kind", PATHS)
@pytest.mark.parametrize("flag", [0, 2])
@pytest.mark.parametrize("case", REFUSED)
async def test_a_refused_send_reaches_the_store_on_no_path(
    tmp_path: Path, kind: str, flag: int, case: str
) -> None:
    path = OnePath(tmp_path, TOPICS, path=kind, gate=gate_with())
    peer = path.peer()
    fields, body = REFUSED[case]
    # An admitted send comes first, so that every cache knows account and topic.
    path.hear(peer, send(1, SIGNED) + send(2, fields, body, flag) + send(3, SIGNED))
    (told,) = await path.settle()
    expected = {1: ResponseCode.SUCCESS, 2: ResponseCode.SYSTEM_ERROR, 3: ResponseCode.SUCCESS}
    if flag:
        del expected[2]
    assert {each.opaque: each.code for each in answers(told)} == expected
    stored = [path.broker.ctx.store.queue_range("T", queue)[1] for queue in range(4)]
    assert stored == [0, 2, 0, 0]
    await path.close()


NAMES = ("T", "T", "T", "Other-Topic", "%RETRY%g", "unknown")
#: Longer than the values that the kernel collects before it hashes them.
LONG = "long" * 300
VALUES = (LONG, "", "x", '"', "\\", "\x01", "é", "主题", "0", "\U0001f600")


def mutated(
    rng: random.Random, fields: dict[str, str], body: bytes
) -> tuple[dict[str, str], bytes]:
    """A request with one difference from the signed one, in fields or body."""
    fields, kind = dict(fields), rng.randrange(7)
    name = rng.choice(list(fields))
    if kind == 0:
        del fields[name]
    elif kind == 1:
        fields[name] += rng.choice(VALUES)
    elif kind == 2:
        fields[rng.choice("znA_ é")] = rng.choice(VALUES)
    elif kind == 3:
        other = rng.choice(list(fields))
        fields[name], fields[other] = fields[other], fields[name]
    elif kind == 4:
        fields[SIGNATURE] = fields.get(SIGNATURE, "")[:27] + rng.choice("=AB")
    elif kind == 5:
        return fields, body + b"!"
    return fields, body


def request(rng: random.Random, number: int) -> bytes:
    """A random send, pull or commit: signed, unsigned or tampered."""
    code = rng.choice([SEND, SEND, SEND, RequestCode.SEND_BATCH_MESSAGE, *PULLS, COMMIT])
    body = b""
    if code in (SEND, RequestCode.SEND_BATCH_MESSAGE):
        fields = common_case_fields(rng.randrange(4)) | {"b": rng.choice(NAMES)}
        # Long bodies are hashed without the GIL.
        body = rng.randbytes(rng.choice([*[rng.randrange(40)] * 9, 16383, 16384, 20_000]))
        if code != SEND:
            fields |= {"m": "true", "i": ""}
            body = encode_batch([Message(topic="T", body=body, properties={"KEYS": "k"})])
        if rng.random() < 0.2:
            fields["extra"] = rng.choice(VALUES)
    else:
        header = pull_header(rng.choice(NAMES), rng.randrange(3), queue_id=rng.randrange(4))
        fields = {name: str(value) for name, value in encode_fields(header).items()}
        if code == COMMIT:
            kept = ("consumerGroup", "topic", "queueId", "commitOffset")
            fields = {name: fields[name] for name in kept}
        fields["consumerGroup"] = rng.choice(["g", "g", "g", "other"])
    account = rng.choice([*["alice"] * 9, "bob", "mallory"])
    kind = rng.random()
    if kind > 0.05:
        fields = signed(fields, body, account)
    if kind > 0.85:
        fields, body = mutated(rng, fields, body)
    flag = 2 if rng.random() < 0.1 else 0
    order = list(fields.items())
    rng.shuffle(order)
    return frame(dict(order), body, code=code, flag=flag, opaque=number)


def swap(rng: random.Random) -> Deed:
    """Other rules come into force."""
    permitted = rng.choice([*[PERMITTED] * 4, {}, {"bob": PERMITTED["alice"]}])
    white = frozenset({WIRE_ADDRESS}) if rng.random() < 0.1 else frozenset[str]()

    def deed(path: OnePath) -> None:
        gate = path.broker.ctx.gate
        assert gate is not None
        gate.use_acl1(SmallRules(2, permitted, white))

    return deed


@pytest.mark.parametrize("seed", range(6))
@needs_kernel
async def test_random_requests_have_equal_answers_and_files(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    turns: list[Said | Deed] = []
    number = 0
    for turn in range(80):
        # The first half has one generation of rules, so that fast paths get many requests.
        if turn > 40 and rng.random() < 0.1:
            turns.append(swap(rng))
        said = []
        for _ in range(rng.randrange(1, 8)):
            count = rng.choice([1, 1, 1, 2, 8])
            said.append(
                (rng.randrange(2), b"".join(request(rng, number + n) for n in range(count)))
            )
            number += count
        turns.append(said)
    path = await same(tmp_path, played(turns, 2), TOPICS, gate=gate_with)
    assert path.messages_sent > 0
    assert path.messages_pulled > 0


def beat_body(group: str) -> bytes:
    """The heartbeat of a client with one consumer."""
    consumer = {
        "groupName": group,
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
        "subscriptionDataSet": [],
    }
    whole = {"clientID": "a", "consumerDataSet": [consumer], "producerDataSet": []}
    return json.dumps(whole).encode()


def beat(group: str, signed_as: str = "") -> bytes:
    """A heartbeat for a group, with the signature for the same group or another one."""
    fields = signed({}, beat_body(signed_as or group))
    return frame(fields, beat_body(group), code=RequestCode.HEART_BEAT)


@needs_kernel
async def test_repeated_heartbeats_take_the_fast_path_until_the_rules_change(
    tmp_path: Path,
) -> None:
    tampered_beat = beat("other", signed_as="g")
    turns: list[Said | Deed] = [[(0, beat("g"))] for _ in range(5)]
    turns += [[(0, beat("other"))], [(0, tampered_beat)], [(0, beat("g"))]]
    turns += [[(0, tampered_beat + beat("g") + beat("g"))], [(0, beat("g"))]]

    def forbid(path: OnePath) -> None:
        gate = path.broker.ctx.gate
        assert gate is not None
        gate.use_acl1(SmallRules(2, {}))

    turns += [forbid, [(0, beat("g"))], [(0, beat("g"))]]
    path = await same(
        tmp_path,
        played(turns, 1),
        TOPICS,
        gate=gate_with,
        notify_consumer_ids_changed_enable=False,
    )
    assert path.heartbeats_taken == 4


@needs_kernel
async def test_a_change_of_the_rules_closes_the_fast_path_at_once(tmp_path: Path) -> None:
    path = OnePath(tmp_path, TOPICS, gate=gate_with())
    gate = path.broker.ctx.gate
    assert gate is not None
    peer = path.peer()
    path.hear(peer, send(0, SIGNED))  # for the slow path, where the gate decides
    path.hear(peer, b"".join(send(number, SIGNED) for number in range(1, 4)))
    await path.settle()
    assert path.messages_sent == 3
    gate.use_acl1(SmallRules(2, {}))
    path.hear(peer, send(4, SIGNED))
    gate.use_acl1(SmallRules(3))
    path.hear(peer, send(5, SIGNED) + send(6, SIGNED))
    (told,) = await path.settle()
    assert {each.opaque: each.code for each in answers(told)} == {
        number: ResponseCode.SYSTEM_ERROR if number == 4 else ResponseCode.SUCCESS
        for number in range(7)
    }
    await path.close()


@needs_kernel
@pytest.mark.parametrize("has_openssl", [True, False])
async def test_without_openssl_signed_sends_are_for_the_slow_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_openssl: bool
) -> None:
    if not has_openssl:
        monkeypatch.setattr("core_broker.kernel.guard.AVAILABLE", False)
    path = OnePath(tmp_path, TOPICS, gate=gate_with())
    peer = path.peer()
    path.hear(peer, send(0, SIGNED))  # for the slow path, where the gate decides
    wrong = send(4, tampered(SIGNED, e="2"))
    path.hear(peer, b"".join(send(number, SIGNED) for number in range(1, 4)) + wrong)
    (told,) = await path.settle()
    assert {each.opaque: each.code for each in answers(told)} == {
        number: ResponseCode.SYSTEM_ERROR if number == 4 else ResponseCode.SUCCESS
        for number in range(5)
    }
    assert path.messages_sent == (3 if has_openssl else 0)
    await path.close()


@pytest.mark.parametrize(
    "text",
    [
        # msgspec, and so the slow path, reads the last of two equal names.
        '{"a":"PG","AccessKey":"bob","AccessKey":"alice"',
        '{"b":"Other-Topic"',
    ],
)
@needs_kernel
async def test_a_name_twice_is_read_the_same_on_all_paths(tmp_path: Path, text: str) -> None:
    fields = dict(SIGNED)
    plain = send(2, fields)
    at = plain.index(b'{"a":')
    double = plain[:at] + text.encode() + b"," + plain[at + 1 :]
    grown = len(double) - len(plain)
    lengths = [
        int.from_bytes(double[0:4], "big") + grown,
        int.from_bytes(double[4:8], "big") + grown,
    ]
    double = b"".join(each.to_bytes(4, "big") for each in lengths) + double[8:]
    turns: list[Said | Deed] = [[(0, send(1, SIGNED))], [(0, double), (0, send(3, SIGNED))]]
    await same(tmp_path, played(turns, 1), TOPICS, gate=gate_with)


@needs_kernel
async def test_more_fields_than_the_kernel_keeps(tmp_path: Path) -> None:
    many = {f"x{number}": str(number) for number in range(100)}
    frames = [
        send(1, SIGNED),
        send(2, signed(FIELDS | many, BODY)),
        send(3, SIGNED | many),
        send(4, FIELDS | many),
    ]
    turns: list[Said | Deed] = [[(0, each)] for each in frames]
    await same(tmp_path, played(turns, 1), TOPICS, gate=gate_with)

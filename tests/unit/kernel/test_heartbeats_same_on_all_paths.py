"""Heartbeats by the kernel against the slow path: equal answers and equal tables."""

import json
import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core_broker.fastpath import has_kernel
from core_broker.fastpath.contracts import KEPT_HEARTBEAT_BYTES_MAX
from core_broker.remoting.codes import RequestCode
from core_broker.state.channels import CHANNEL_EXPIRED_MS
from tests.support.two_paths import Deed, OnePath, Said

pytestmark = pytest.mark.skipif(not has_kernel(), reason="the kernel is not compiled here")

PEERS = 2
CODES = {
    "beat": RequestCode.HEART_BEAT,
    "leave": RequestCode.UNREGISTER_CLIENT,
    "forget": RequestCode.DELETE_SUBSCRIPTIONGROUP,
}


def frame(code: int, body: bytes = b"", *, opaque: int = 7, **header: Any) -> bytes:
    """Encode a frame like a client; fields of None are omitted."""
    whole = {"code": code, "flag": 0, "language": "JAVA", "opaque": opaque, "version": 401}
    whole = {name: value for name, value in (whole | header).items() if value is not None}
    text = json.dumps(whole, separators=(",", ":")).encode()
    return struct.pack(">II", 4 + len(text) + len(body), len(text)) + text + body


def subscription(topic: str, text: str = "*", version: int = 1, kind: str = "TAG") -> Any:
    return {"topic": topic, "subString": text, "subVersion": version, "expressionType": kind}


def consumer(name: str, *subscriptions: Any, **fields: Any) -> Any:
    common = {"consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING"}
    rest = {"consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET", "unitMode": False}
    return {"groupName": name, "subscriptionDataSet": subscriptions, **common, **rest, **fields}


def body_of(client_id: str, consumers: Sequence[Any] = (), producers: Sequence[str] = ()) -> bytes:
    names = [{"groupName": each} for each in producers]
    whole = {"clientID": client_id, "consumerDataSet": consumers, "producerDataSet": names}
    return json.dumps(whole).encode()


def beat(body: bytes, **header: Any) -> bytes:
    return frame(CODES["beat"], body, **header)


BODIES = [
    body_of("a", [consumer("G", subscription("T"))]),
    body_of("a", [consumer("G", subscription("T", "A || B", 2))]),
    body_of("a", [consumer("G", subscription("T"), subscription("U"))]),
    body_of("b", [consumer("G", subscription("T"))], ["P"]),
    body_of("a", [consumer("G", subscription("T"), messageModel="BROADCASTING")]),
    body_of("a", [consumer("G", subscription("T"), consumeType="CONSUME_ACTIVELY")]),
    # A heartbeat with the same group twice: the second entry replaces the first.
    body_of("a", [consumer("G", subscription("T")), consumer("G", subscription("U"))]),
    body_of("a", [], ["P", "Q"]),
    body_of("b", [], ["P"]),
    body_of("a", [consumer("H", subscription("T", "a > 1", 3, "SQL92"))]),
    body_of("b", [consumer("H", subscription("T", "a > 2", 4, "SQL92"))]),
    body_of("a", [consumer("H", subscription("T", "a >", 5, "SQL92"))]),
    body_of("a", [consumer("a b", subscription("T"))]),
    body_of("a", [consumer("", subscription("T"))], [""]),
    b"",
    b"{",
    b"[]",
    b'{"clientID":7}',
    b"\xff\xfe",
    b'{"clientID":"a","consumerDataSet":null,"producerDataSet":[]}',
]
headers = st.one_of(
    st.just({}),
    st.sampled_from(
        [
            {"language": "CPP"},
            {"language": "?"},
            {"language": None},
            {"language": 3},
            {"version": 435},
            {"version": None},
            {"flag": 2},
            {"flag": 4},
            {"extFields": {"a": "b"}},
            {"extFields": {}},
            {"remark": "x"},
        ]
    ),
)
said = st.one_of(
    st.builds(lambda body, header: beat(body, **header), st.sampled_from(BODIES[:2]), headers),
    st.builds(beat, st.sampled_from(BODIES[:2])),
    st.builds(beat, st.sampled_from(BODIES)),
    st.builds(beat, st.sampled_from(BODIES), opaque=st.integers(0, 2**31 - 1)),
    st.builds(
        lambda fields: frame(CODES["leave"], extFields={"clientID": "a", **fields}),
        st.sampled_from([{"consumerGroup": "G"}, {"producerGroup": "P"}, {"consumerGroup": "H"}]),
    ),
    st.just(frame(CODES["forget"], extFields={"groupName": "G"})),
)
turns = st.lists(
    st.lists(
        st.tuples(st.integers(0, PEERS - 1), st.lists(said, max_size=3).map(b"".join)), max_size=3
    ),
    max_size=8,
)


async def compare_beats(folder: Path, turns: Sequence[Said | Deed]) -> int:
    """Feed both brokers equally, a second per iteration; return the fast path's heartbeats."""
    changes: dict[str, Any] = {
        "wait_time_mills_in_heartbeat_queue": 60_000,
        "notify_consumer_ids_changed_enable": False,
        "enable_property_filter": True,
    }
    fast = OnePath(folder / "hot", [("T", 1)], **changes)
    slow = OnePath(folder / "plain", [("T", 1)], **changes, kernel_enable=False)
    for path in [fast, slow] * PEERS:
        path.peer()
    for turn in turns:
        for path in (fast, slow):
            path.broker.now_ms += 1_000
            if callable(turn):
                turn(path)
                continue
            for number, data in turn:
                path.hear(number, data)
        assert await fast.settle() == await slow.settle()
        assert tables(fast) == tables(slow)
    assert slow.heartbeats_taken == 0
    await fast.close()
    await slow.close()
    return fast.heartbeats_taken


def tables(path: OnePath) -> tuple[object, ...]:
    """Tables and counters that heartbeats change."""
    ctx = path.broker.ctx
    ports = {path.connection(number): number for number in range(PEERS)}

    def shown(clients: Any) -> list[tuple[object, ...]]:
        return [
            (ports[each.channel], each.client_id, each.language, each.version, each.seen_ms)
            for each in clients
        ]

    groups = {
        name: (shown(group.members.values()), group.consume_settings())
        for name in ctx.consumers.groups
        if (group := ctx.consumers.group(name)) is not None
    }
    producers = {name: shown(ctx.producers.members(name)) for name in ctx.producers.groups}
    known = [shown([found]) for name in "ab" if (found := ctx.producers.client(name)) is not None]
    tables = (ctx.filters.encode(), ctx.groups.encode(), ctx.topics.encode())
    counts = (ctx.consumers.changes, ctx.producers.changes, ctx.filters.changes)
    return groups, producers, known, tables, counts


@settings(deadline=None, max_examples=50)
@given(turns=turns)
async def test_random_requests(turns: list[list[tuple[int, bytes]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        await compare_beats(Path(folder), turns)


@pytest.mark.parametrize("number", [0, 2, 3, 7, 9, 12])
async def test_the_third_equal_heartbeat_takes_the_fast_path(tmp_path: Path, number: int) -> None:
    """The first heartbeat changes the tables, the second heartbeat changes nothing."""
    said: list[Said] = [[(0, beat(BODIES[number], opaque=each))] for each in range(5)]
    assert await compare_beats(tmp_path, said) == 3


async def test_several_heartbeats_in_one_read(tmp_path: Path) -> None:
    said: list[Said] = [[(0, beat(BODIES[0]))], [(0, beat(BODIES[0]))]]
    said += [[(0, b"".join(beat(BODIES[0], opaque=each) for each in range(4)))]]
    said += [[(0, beat(BODIES[0], flag=2) + beat(BODIES[0]) + beat(BODIES[1]) + beat(BODIES[0]))]]
    assert await compare_beats(tmp_path, said) == 6


@pytest.mark.parametrize("number", [6, *range(14, len(BODIES) - 1)])
async def test_changing_or_refused_heartbeats_take_the_slow_path(
    tmp_path: Path, number: int
) -> None:
    said: list[Said] = [[(0, beat(BODIES[number]))] for _ in range(4)]
    assert await compare_beats(tmp_path, said) == 0


async def test_a_change_by_another_client_sends_heartbeats_to_the_slow_path(tmp_path: Path) -> None:
    first, other = BODIES[0], body_of("b", [consumer("G", subscription("T", "A", 9))])

    def vanish(path: OnePath) -> None:
        path.connection(1).close("test")

    said: list[Said | Deed] = [[(0, beat(first))]] * 3
    said += [[(1, beat(other))], [(0, beat(first))], [(0, beat(first))]]
    assert await compare_beats(tmp_path / "joined", said) == 2
    said += [[(1, frame(CODES["leave"], extFields={"clientID": "b", "consumerGroup": "G"}))]]
    said += [[(0, beat(first))]] * 2
    assert await compare_beats(tmp_path / "left", said) == 3
    said += [[(0, frame(CODES["forget"], extFields={"groupName": "G"}))]]
    said += [[(0, beat(first))]] * 3
    assert await compare_beats(tmp_path / "deleted", [*said, vanish]) == 4


async def test_a_long_heartbeat_is_not_kept(tmp_path: Path) -> None:
    topics = [subscription(f"Topic-{number}") for number in range(KEPT_HEARTBEAT_BYTES_MAX // 40)]
    body = body_of("a", [consumer("G", *topics)])
    assert len(body) > KEPT_HEARTBEAT_BYTES_MAX
    said: list[Said] = [[(0, beat(each))] for each in (BODIES[0], BODIES[0], *[body] * 4)]
    assert await compare_beats(tmp_path, said) == 0


async def test_a_client_with_repeated_heartbeats_does_not_expire(tmp_path: Path) -> None:
    """The compiled fast path renews the time of the client's last heartbeat."""
    path = OnePath(tmp_path, [("T", 1)])
    path.peer()
    for _ in range(5):
        path.hear(0, beat(BODIES[3]))
        await path.settle()
        path.broker.now_ms += CHANNEL_EXPIRED_MS
    assert path.heartbeats_taken == 3
    ctx = path.broker.ctx
    assert ctx.consumers.expired(ctx.now_ms()) == ctx.producers.expired(ctx.now_ms()) == []
    await path.close()


async def test_a_heartbeat_after_the_queue_wait_limit_is_refused(tmp_path: Path) -> None:
    path = OnePath(tmp_path, [("T", 1)], wait_time_mills_in_heartbeat_queue=-1)
    path.peer()
    for _ in range(3):
        path.hear(0, beat(BODIES[0]))
        await path.settle()
    assert path.heartbeats_taken == 0
    await path.close()

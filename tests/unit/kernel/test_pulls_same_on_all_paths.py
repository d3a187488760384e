"""Pulls and commits by the kernel against the slow path: equal answers, counts and offsets."""

import json
import random
import struct
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core_broker.fastpath import has_kernel
from core_broker.remoting.bodies import ConsumerData, HeartbeatData, SubscriptionData, encode_body
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.frames import FrameSplitter
from core_broker.remoting.headers import (
    PullMessageRequestHeader,
    UpdateConsumerOffsetRequestHeader,
)
from tests.support.broker_requests import pull_header, send_header
from tests.support.two_paths import OnePath, Said, compare_pulls

pytestmark = pytest.mark.skipif(not has_kernel(), reason="the kernel is not compiled here")

TOPICS = (("T", 2), ("Other", 1), ("%RETRY%CG", 1))
TAGS = ["A", "B", "Aa", "BB", ""]


def command(code: int, header: Any, body: bytes = b"", *, opaque: int = 7, flag: int = 0) -> bytes:
    """Encode a frame like Gantry's client."""
    request = RemotingCommand.request(code, header, body)
    request.opaque = opaque
    request.flag = flag
    return request.encode()


def sent(number: int, tag: str = "A", *, topic: str = "T", queue: int = 0, size: int = 30) -> bytes:
    """A send of one message."""
    properties = f"TAGS\x01{tag}\x02KEYS\x01{number}" if tag else ""
    header = send_header(topic, properties, queue_id=queue, born_timestamp=1_700_000_000_000)
    return command(RequestCode.SEND_MESSAGE_V2, header, b"%d" % number * size, opaque=number)


def pulled(offset: int = 0, *, opaque: int = 7, code: int = 11, **fields: Any) -> bytes:
    """A pull without the suspend flag."""
    return command(code, pull_header("T", offset, **fields), opaque=opaque)


def hearing(codes: Any = (), **subscription: Any) -> bytes:
    """A heartbeat of a consumer of T."""
    data = SubscriptionData(topic="T", **({"sub_string": "*"} | subscription))
    consumer = ConsumerData(group_name="CG", subscription_data_set=[data])
    beat = HeartbeatData(client_id="me", consumer_data_set=[consumer])
    return command(RequestCode.HEART_BEAT, None, encode_body(beat))


def backlog(count: int, **kinds: Any) -> list[Said]:
    """An iteration that stores messages, some with tags."""
    rng = random.Random(3)
    return [[(0, b"".join(sent(each, rng.choice(TAGS), **kinds) for each in range(count)))]]


#: The first pull of a group creates the group, and the first pull that rejects a tags code compares
#: the code with a record; both are for the slow path.
FIRST: list[Said] = [[(0, pulled())], [(0, pulled(0, subscription="none"))]]

numbers = st.one_of(
    st.integers(-2, 45).map(str),
    st.sampled_from(["00", "+1", " 1", "", "1.0", "2147483648", "-2147483649", "9" * 20]),
)
pull_fields = st.fixed_dictionaries(
    {
        "consumerGroup": st.sampled_from(
            ["CG", "CG", "CG", "New", "", "CID_RMQ_SYS_TRANS", "TOOLS_CONSUMER", "é"]
        ),
        "topic": st.sampled_from(["T", "T", "T", "Other", "None", "%RETRY%CG", "%LMQ%x", ""]),
        "queueId": st.one_of(st.sampled_from(["0", "0", "1", "2"]), numbers),
        "queueOffset": st.one_of(st.integers(0, 40).map(str), numbers),
        "maxMsgNums": st.one_of(st.sampled_from(["32", "1", "5"]), numbers),
        "sysFlag": st.one_of(st.sampled_from(["4", "5", "0", "1", "20"]), numbers),
        "commitOffset": st.one_of(st.integers(0, 9).map(str), numbers),
        "suspendTimeoutMillis": st.one_of(st.just("15000"), numbers),
        "subVersion": st.one_of(st.sampled_from(["0", "5"]), numbers),
    },
    optional={
        "subscription": st.sampled_from(["*", "A", "A || B", "Aa||x", " ", "||", "é", "a > 1"]),
        "expressionType": st.sampled_from(["TAG", "", "SQL92", "tag"]),
        "maxMsgBytes": st.one_of(st.sampled_from(["1", "300", "9999"]), numbers),
        "bname": st.just("b"),
        "x": st.just("\x00"),
    },
)
commit_fields = st.fixed_dictionaries(
    {
        "consumerGroup": st.sampled_from(["CG", "New", "", "CID_RMQ_SYS_TRANS", "a b"]),
        "topic": st.sampled_from(["T", "None", "", "a b"]),
        "queueId": st.one_of(st.just("0"), numbers),
        "commitOffset": st.one_of(st.integers(0, 9).map(str), numbers),
    }
)


def frame(fields: dict[str, str], *, code: int, flag: int, opaque: int, spaces: bool) -> bytes:
    """Encode a frame with raw fields, like any client."""
    header = {"code": code, "extFields": fields, "flag": flag, "opaque": opaque, "version": 409}
    text = json.dumps(header, separators=None if spaces else (",", ":")).encode()
    return struct.pack(">II", 4 + len(text), len(text)) + text


asked = st.one_of(
    st.builds(
        frame,
        pull_fields,
        code=st.sampled_from([11, 11, 361, 1100]),
        flag=st.sampled_from([0, 0, 0, 2]),
        opaque=st.integers(0, 2**31 - 1),
        spaces=st.sampled_from([False, False, True]),
    ),
    st.builds(
        frame,
        commit_fields,
        code=st.just(15),
        flag=st.sampled_from([0, 2, 2]),
        opaque=st.integers(0, 2**31 - 1),
        spaces=st.just(False),
    ),
    st.integers(0, 45).map(pulled),
    st.sampled_from([sent(99), sent(98, "B"), hearing(), hearing(sub_string="A || B")]),
)
turns = st.lists(
    st.lists(st.tuples(st.integers(0, 1), st.lists(asked, max_size=4).map(b"".join)), max_size=3),
    max_size=4,
)


@settings(deadline=None, max_examples=80)
@given(turns=turns)
async def test_random_requests(turns: list[list[tuple[int, bytes]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        await compare_pulls(Path(folder), [*backlog(20), *FIRST, *turns], TOPICS)


async def test_a_backlog_takes_a_fast_path(tmp_path: Path) -> None:
    """By queue, by tag, in pieces, from the end on, several pulls in one read."""
    asked = [
        [(0, pulled(offset, max_msg_nums=7)) for offset in range(0, 42, 3)],
        [(0, pulled(5, opaque=1) + pulled(6, opaque=2, code=361) + pulled(7, opaque=3))],
        [(0, pulled(0, subscription="A || Aa")), (1, pulled(3, subscription="BB", max_msg_nums=2))],
        [(0, pulled(0, max_msg_bytes=400)), (1, pulled(39)), (0, pulled(40)), (0, pulled(41))],
        [(0, pulled(0, max_msg_nums=0)), (0, pulled(0, max_msg_nums=-1))],
    ]
    assert await compare_pulls(tmp_path, [*backlog(40), *FIRST, *asked], TOPICS) > 200


async def test_pulls_of_tools_are_fast_and_count_for_no_path_as_consumption(tmp_path: Path) -> None:
    """Also after a change of topics or groups, which drops the sources of the fast path."""
    tools = [[(0, pulled(offset, consumer_group="TOOLS_CONSUMER"))] for offset in (0, 5, 30)]
    asked = [*tools, *FIRST, *tools, [(0, pulled(3))], *FIRST, [(0, sent(1, topic="New"))], *tools]
    assert await compare_pulls(tmp_path, [*backlog(20), *asked], TOPICS) > 60


async def test_one_queue_read_at_many_offsets(tmp_path: Path) -> None:
    """More read offsets than the kernel keeps, in random order, far apart, at a growing end."""
    rng = random.Random(17)
    places = [0, 0, 300, 700, 1100, 1400, 1500]
    asked: list[Said] = []
    for turn in range(60):
        number = rng.randrange(len(places))
        count = rng.choice([1, 32, 32, 32])
        asked.append([(0, pulled(places[number], opaque=turn, max_msg_nums=count))])
        # At the end an offset stays; about one pull of ten jumps back to offset 5.
        places[number] = min(places[number] + count, 1500) if rng.random() < 0.9 else 5
        if turn % 7 == 0:
            asked.append([(1, sent(turn))])
    stored = [(0, b"".join(sent(each) for each in range(100))) for _ in range(15)]
    asked = [[each] for each in stored] + [*FIRST, *asked]
    assert await compare_pulls(tmp_path, asked, TOPICS) > 800


async def test_frames_cut_anywhere(tmp_path: Path) -> None:
    rng = random.Random(11)
    stream = b"".join(pulled(rng.randrange(30), opaque=each, max_msg_nums=3) for each in range(60))
    asked: list[Said] = []
    while stream:
        count = rng.randrange(1, 900)
        asked.append([(0, stream[:count])])
        stream = stream[count:]
    assert await compare_pulls(tmp_path, [*backlog(30), *FIRST, *asked], TOPICS) > 100


async def test_sends_and_pulls_of_one_peer(tmp_path: Path) -> None:
    """Messages of the same iteration are invisible, messages of earlier iterations are visible."""
    asked: list[Said] = [
        [(0, sent(each) + pulled(each) + sent(each, queue=1) + pulled(max(each - 1, 0)))]
        for each in range(20)
    ]
    assert await compare_pulls(tmp_path, [*backlog(1), *FIRST, *asked], TOPICS) > 0


async def test_commits(tmp_path: Path) -> None:
    """In a pull and alone, with and without an answer; the last one counts."""
    commits = [
        command(
            RequestCode.UPDATE_CONSUMER_OFFSET,
            UpdateConsumerOffsetRequestHeader(
                consumer_group="CG", topic="T", queue_id=0, commit_offset=offset
            ),
            flag=flag,
        )
        for offset, flag in ((3, 0), (4, 2), (2, 2), (9, 0))
    ]
    asked: list[Said] = [[(0, pulled(2, sys_flag=5, commit_offset=2))]]
    asked += [[(0, each)] for each in commits]
    asked += [[(0, commits[0] + pulled(3, sys_flag=5, commit_offset=8) + commits[1])]]
    assert await compare_pulls(tmp_path, [*backlog(9), *FIRST, *asked], TOPICS) > 0


async def test_held_pulls(tmp_path: Path) -> None:
    """Held pulls are woken once per iteration, by messages that match their filter."""
    held = [pulled(5, sys_flag=6, opaque=each) for each in range(2)]
    held += [pulled(5, sys_flag=6, opaque=9, subscription="B")]
    held += [pulled(5, sys_flag=7, opaque=10, commit_offset=4, max_msg_nums=2)]
    asked: list[Said] = [[(0, b"".join(held)), (1, held[0])], [(1, sent(1) + sent(2))]]
    asked += [[(1, sent(3, "B"))], [(0, pulled(8, sys_flag=6))], [(0, sent(4, queue=1))]]
    asked += [[(0, pulled(8, sys_flag=6, opaque=11) + sent(5))]]
    assert await compare_pulls(tmp_path, [*backlog(5), *FIRST, *asked], TOPICS) > 9


async def test_no_pulls_are_answered_for_a_peer_that_does_not_read(tmp_path: Path) -> None:
    """The peer's pulls wait until the peer reads again; pulls of other peers go on."""
    path = OnePath(tmp_path, TOPICS)
    slow, quick = path.peer(), path.peer()
    for turn in [*backlog(3), *FIRST, [(slow, pulled(3, sys_flag=6, opaque=5))]]:
        for number, data in turn:
            path.hear(number, data)
        await path.settle()
    path.hear(quick, pulled(3, sys_flag=6, opaque=6))
    path.connection(slow).pause_writing()
    path.hear(slow, pulled(0, opaque=7))
    path.hear(quick, sent(3))
    before = await path.settle()
    assert [each.opaque for each in FrameSplitter().feed(before[slow])[5:]] == []
    assert [each.opaque for each in FrameSplitter().feed(before[quick])] == [3, 6]
    assert path.messages_pulled == 1
    path.connection(slow).resume_writing()
    after = await path.settle()
    # While the peer does not read, no pull is read; the held pull is answered first.
    assert [each.opaque for each in FrameSplitter().feed(after[slow])[5:]] == [5, 7]
    assert after[quick] == before[quick]
    await path.close()


async def test_answers_beyond_the_high_water_mark(tmp_path: Path) -> None:
    """Beyond a connection's high-water mark no answer is made; answers keep their order."""
    stored: list[Said] = [[(0, sent(each, size=2000))] for each in range(40)]
    asked: list[Said] = [[(0, b"".join(pulled(0, opaque=each) for each in range(30)))]]
    assert await compare_pulls(tmp_path, [*stored, *FIRST, *asked], TOPICS) > 0


async def test_subscriptions_of_heartbeats(tmp_path: Path) -> None:
    """A changed subscription of a group replaces the kernel's sources."""
    pull = pulled(0, sys_flag=0, sub_version=3)
    asked: list[Said] = [[(0, pull)], [(0, hearing(sub_version=3, sub_string="A"))], [(0, pull)]]
    asked += [[(0, hearing(sub_version=4, sub_string="B"))], [(0, pull)], [(1, pull)]]
    asked += [[(0, hearing(sub_version=2, sub_string="*"))], [(0, pull)]]
    ahead = pulled(0, sys_flag=0, sub_version=9)
    asked += [[(0, ahead)], [(0, hearing(sub_version=9, sub_string="A"))], [(0, ahead)]]
    asked += [[(0, pulled(0, sys_flag=0, sub_version=10))]]
    assert await compare_pulls(tmp_path, [*backlog(30), *FIRST, *asked], TOPICS) > 0


@pytest.mark.parametrize("at", [4, 8, 12, 20, 28, 36, 84, 90, -1, -20])
async def test_a_damaged_record(tmp_path: Path, at: int) -> None:
    """One changed byte: whole records are returned, and the damage is counted, on all paths."""

    def damage(path: OnePath) -> None:
        store = path.broker.ctx.store
        unit = store.queue_units("T", 0, 3, 1)[0]
        where = unit.offset_physical + (at if at >= 0 else unit.size + at)
        log = min((path.folder / "commitlog").iterdir())
        with log.open("r+b") as file:
            file.seek(where)
            byte = file.read(1)
            file.seek(where)
            file.write(bytes([byte[0] ^ 0x40]))

    asked: list[Said] = [[(0, pulled(each))] for each in range(6)]
    stored = [*backlog(8), *FIRST]
    assert await compare_pulls(tmp_path, [*stored, damage, *asked], TOPICS) > 0


async def test_bodies_of_all_lengths_are_checked(tmp_path: Path) -> None:
    """The kernel's checksum equals zlib's for every remainder behind whole blocks."""
    stored: list[Said] = [[(0, sent(1, size=size))] for size in [*range(200), 1024, 5000]]
    asked: list[Said] = [[(0, pulled(each))] for each in range(0, 202, 32)]
    assert await compare_pulls(tmp_path, [*stored, *FIRST, *asked], TOPICS) == 202


async def test_a_deleted_and_recreated_topic(tmp_path: Path) -> None:
    """The kernel drops the kept state of the deleted topic's queues."""
    delete = command(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "T"})
    create = command(
        RequestCode.UPDATE_AND_CREATE_TOPIC,
        {
            "topic": "T",
            "defaultTopic": "TBW102",
            "readQueueNums": "2",
            "writeQueueNums": "2",
            "perm": "6",
            "topicFilterType": "SINGLE_TAG",
            "order": "false",
        },
    )
    asked: list[Said] = [[(0, pulled())], [(0, delete)], [(0, pulled())], [(0, create)]]
    asked += [[(0, sent(5))], [(0, pulled())], [(0, pulled())]]
    assert await compare_pulls(tmp_path, [*backlog(5), *FIRST, *asked], TOPICS) > 0


async def test_a_pull_header_of_every_client_field(tmp_path: Path) -> None:
    header = PullMessageRequestHeader(
        consumer_group="CG",
        topic="T",
        queue_id=0,
        queue_offset=1,
        max_msg_nums=32,
        sys_flag=6,
        commit_offset=0,
        suspend_timeout_millis=20_000,
        sub_version=1_700_000_000_000,
        subscription="A||B",
        expression_type="TAG",
        max_msg_bytes=262_144,
        broker_name="b",
    )
    asked: list[Said] = [[(0, command(RequestCode.PULL_MESSAGE, header))]]
    assert await compare_pulls(tmp_path, [*backlog(9), *FIRST, *asked], TOPICS) > 0

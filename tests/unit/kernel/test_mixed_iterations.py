"""Paths mixed within one iteration: order, offsets, and settings that change."""

import random
from pathlib import Path
from typing import Any

import pytest

from core_broker.fastpath import has_kernel
from core_broker.message.batch import encode_batch
from core_broker.message.model import Message
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.frames import FrameSplitter
from tests.support.send_frames import common_case_frame, frame
from tests.support.two_paths import OnePath, compare, same

pytestmark = pytest.mark.skipif(not has_kernel(), reason="the kernel is not compiled here")

TOPICS = (("T", 4), ("U", 2))
PEERS = 3
LOG_BYTES = 1 << 20
TURNS = 8


def slow_path_frame(number: int) -> bytes:
    """A send for the slow path."""
    kinds: list[dict[str, str]] = [
        {"n": "é"},
        {"i": "DELAY\x011\x02TAGS\x01A"},
        {"i": "TRAN_MSG\x01true\x02PGROUP\x01PG", "f": "4"},
        {"e": "-1"},
        {"e": "99"},
        {"b": "New"},
        {"b": "no such/topic"},
        {"j": "1"},
        {"b": "%RETRY%g"},
    ]
    return common_case_frame(number, **kinds[number % len(kinds)])


def one_way(number: int) -> bytes:
    fields = {"a": "PG", "b": "T", "c": "TBW102", "d": "4", "e": "1", "f": "0", "g": "5", "h": "0"}
    return frame(fields, b"one-way", code=310, flag=2, opaque=number)


def batch(number: int) -> bytes:
    messages = [Message("T", b"%d of %d" % (n, number), keys=f"k{n}") for n in range(3)]
    return common_case_frame(number, encode_batch(messages), m="true", i="")


def pull(number: int) -> bytes:
    fields = {
        "consumerGroup": "CG",
        "topic": "T",
        "queueId": str(number % 4),
        "queueOffset": "0",
        "maxMsgNums": "32",
        "sysFlag": "4",
        "commitOffset": "0",
        "suspendTimeoutMillis": "0",
        "subVersion": "0",
        "subscription": "*",
    }
    return frame(fields, b"", code=RequestCode.PULL_MESSAGE, opaque=number)


def create(number: int, *, queues: int = 4, perm: int = 6, kind: str = "SINGLE_TAG") -> bytes:
    fields = {
        "topic": "T",
        "defaultTopic": "TBW102",
        "readQueueNums": str(queues),
        "writeQueueNums": str(queues),
        "perm": str(perm),
        "topicFilterType": kind,
        "topicSysFlag": "0",
        "order": "false",
    }
    return frame(fields, b"", code=RequestCode.UPDATE_AND_CREATE_TOPIC, opaque=number)


def delete(number: int) -> bytes:
    return frame({"topic": "T"}, b"", code=RequestCode.DELETE_TOPIC_IN_BROKER, opaque=number)


def configure(number: int, text: str) -> bytes:
    return frame({}, text.encode(), code=RequestCode.UPDATE_BROKER_CONFIG, opaque=number)


CHANGES = [
    delete,
    create,
    lambda number: create(number, queues=1),
    lambda number: create(number, queues=8),
    lambda number: create(number, perm=4),
    lambda number: create(number, kind="MULTI_TAG"),
    lambda number: configure(number, "traceOn=false"),
    lambda number: configure(number, "maxMessageSize=300"),
    lambda number: configure(number, "maxMessageSize=4096"),
]


def random_turns(
    seed: int, kinds: list[Any], *, reads: int, frames_max: int
) -> list[list[tuple[int, bytes]]]:
    """Random iterations of `reads` reads: the peer's number, and frames of any kind."""
    rng = random.Random(seed)
    return [
        [
            (rng.randrange(PEERS), b"".join(rng.choice(kinds)(rng.randrange(99)) for _ in range(n)))
            for n in rng.choices(range(1, frames_max + 1), k=reads)
        ]
        for _ in range(TURNS)
    ]


def settings(flush: str) -> dict[str, Any]:
    return {"flush_disk_type": flush, "mapped_file_size_commit_log": LOG_BYTES}


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
@pytest.mark.parametrize("seed", range(3))
async def test_any_order_over_several_connections(tmp_path: Path, seed: int, flush: str) -> None:
    """Answers, offsets and files are equal on all paths."""
    kinds: list[Any] = [common_case_frame] * 6 + [slow_path_frame, one_way, batch, pull]
    turns = random_turns(seed, kinds, reads=5, frames_max=6)
    assert await compare(tmp_path, turns, TOPICS, **settings(flush)) > 40


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
@pytest.mark.parametrize("seed", range(4))
async def test_changes_between_sends_of_one_iteration(
    tmp_path: Path, seed: int, flush: str
) -> None:
    """A deleted, recreated or changed topic, or a changed setting, is in force from then on."""
    kinds: list[Any] = [common_case_frame] * 10 + [slow_path_frame, batch, *CHANGES]
    turns = random_turns(seed, kinds, reads=6, frames_max=4)
    await compare(tmp_path, turns, TOPICS, **settings(flush))


@pytest.mark.parametrize("change", CHANGES)
async def test_one_change_in_the_middle_of_a_read(tmp_path: Path, change: Any) -> None:
    sends = b"".join(common_case_frame(number) for number in range(8))
    turns = [[(0, sends + change(50) + sends), (1, sends)], [(1, sends), (0, sends)]]
    assert await compare(tmp_path, turns, TOPICS) >= 8


async def test_queues_that_are_removed_by_the_broker_itself(tmp_path: Path) -> None:
    """Removal by the store: kept records are staged before the queues are removed."""

    async def play(path: OnePath) -> object:
        peer, store = path.peer(), path.broker.ctx.store
        path.hear(peer, common_case_frame(0) + common_case_frame(4))
        store.delete_topic("T")
        path.hear(peer, common_case_frame(8))
        store.clean_expired_queues()
        path.hear(peer, common_case_frame(12))
        return await path.settle()

    assert (await same(tmp_path, play, TOPICS)).messages_sent == 4


async def test_offsets_follow_the_order_of_arrival(tmp_path: Path) -> None:
    """Sends of two peers to one queue, alternating between paths, get offsets 0, 1, 2 …."""
    path = OnePath(tmp_path, TOPICS)
    peers = [path.peer(), path.peer()]
    for number in range(20):
        slow_path_fields = {"j": "1"} if number % 3 == 0 else {}
        path.hear(
            peers[number % 2], common_case_frame(number, b"%d" % number, e="0", **slow_path_fields)
        )
    told = await path.settle()
    offsets = {
        each.opaque: int(each.ext_fields["queueOffset"])
        for answers in told
        for each in FrameSplitter().feed(answers)
    }
    assert offsets == {number: number for number in range(20)}
    stored = await path.broker.messages("T", 0)
    assert [each.body for each in stored] == [b"%d" % number for number in range(20)]
    await path.close()

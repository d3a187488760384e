"""Pulls without a message: the kernel and the slow path answer or hold them alike."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core_broker.fastpath import has_kernel
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from tests.support.broker_requests import pull_header, send_header
from tests.support.two_paths import OnePath, Said, compare_pulls

pytestmark = pytest.mark.skipif(not has_kernel(), reason="the kernel is not compiled here")

TOPICS = (("T", 2),)
WAIT_MS = 15_000


def frame(code: int, header: Any, body: bytes = b"", *, opaque: int = 7) -> bytes:
    request = RemotingCommand.request(code, header, body)
    request.opaque = opaque
    return request.encode()


def sent(number: int, tag: str = "A") -> bytes:
    header = send_header("T", f"TAGS\x01{tag}\x02", queue_id=0, born_timestamp=1_700_000_000_000)
    return frame(RequestCode.SEND_MESSAGE_V2, header, b"%d" % number, opaque=number)


def pulled(
    offset: int, *, opaque: int = 7, code: int = RequestCode.PULL_MESSAGE, **fields: Any
) -> bytes:
    return frame(code, pull_header("T", offset, **fields), opaque=opaque)


def held(offset: int, **fields: Any) -> bytes:
    return pulled(offset, **({"sys_flag": 6, "suspend_timeout_millis": WAIT_MS} | fields))


#: A few messages, then the pull that creates the group.
BEGIN: list[Said] = [[(0, b"".join(sent(each) for each in range(4)))], [(0, pulled(0))]]


#: An iteration without requests, in which earlier answers are written.
QUIET: Said = []


def later(path: OnePath) -> None:
    """Expire all held pulls."""
    path.broker.now_ms += WAIT_MS
    path.broker.requests.pulls.expire()


async def test_at_the_end_of_a_queue(tmp_path: Path) -> None:
    """Answered at once without the suspend flag; an empty queue is answered differently."""
    asked = [[(0, pulled(4, opaque=1) + pulled(4, opaque=2, code=361) + pulled(5) + pulled(3))]]
    asked += [
        [(0, pulled(0, queue_id=1)), (1, pulled(1, queue_id=1)), (0, pulled(4, subscription="B"))]
    ]
    asked += [
        [(0, pulled(4, sys_flag=5, commit_offset=4))],
        [(0, sent(4) + pulled(4))],
        [(0, pulled(4))],
    ]
    await compare_pulls(tmp_path, [*BEGIN, *asked], TOPICS)


async def test_no_matching_message(tmp_path: Path) -> None:
    asked: list[Said] = [[(0, pulled(0, subscription="B") + pulled(2, subscription="B || C"))]]
    asked += [[(0, pulled(1, subscription="B", sys_flag=7, commit_offset=2))]]
    asked += [[(0, pulled(0, subscription="B", max_msg_nums=0, max_msg_bytes=0))]]
    asked += [[(0, sent(4, "B"))], [(0, pulled(0, subscription="B") + pulled(5, subscription="B"))]]
    await compare_pulls(tmp_path, [*BEGIN, *asked], TOPICS)


async def test_held_and_woken(tmp_path: Path) -> None:
    """Filters decide; pulls without a match are held until their deadline."""
    everything = [held(4, opaque=each) for each in range(3)]
    few = [held(4, opaque=8, max_msg_nums=1), held(4, opaque=9, max_msg_bytes=1)]
    tagged = [held(4, opaque=10, subscription="B"), held(4, opaque=11, sys_flag=7, commit_offset=3)]
    asked: list[Any] = [[(0, b"".join(everything + few)), (1, b"".join(tagged))], [(1, sent(4))]]
    asked += [[(0, sent(5))], later, [(0, held(6, opaque=12))], [(1, sent(6, "B"))], later, QUIET]
    assert await compare_pulls(tmp_path, [*BEGIN, *asked], TOPICS) > 4


async def test_pulls_are_held_until_their_deadline(tmp_path: Path) -> None:
    asked: list[Any] = [[(0, held(4, opaque=1)), (1, held(4, opaque=2, suspend_timeout_millis=1))]]
    asked += [later, [(0, sent(4))], later, QUIET]
    await compare_pulls(tmp_path, [*BEGIN, *asked], TOPICS)


@pytest.mark.parametrize(
    "changes",
    [
        {"long_polling_enable": False, "short_polling_time_mills": 100},
        {"pull_thread_pool_queue_capacity": 2},
    ],
)
async def test_settings_of_holding(tmp_path: Path, changes: dict[str, Any]) -> None:
    asked: list[Any] = [[(0, b"".join(held(4, opaque=each) for each in range(5)))], later, QUIET]
    await compare_pulls(tmp_path, [*BEGIN, *asked], TOPICS, **changes)


async def test_the_limit_of_requests_in_flight_per_peer(tmp_path: Path) -> None:
    """Further pulls are refused as busy, also in the middle of a read."""

    def bound(path: OnePath) -> None:
        path.connection(0).limits = replace(path.connection(0).limits, in_flight_max=3)

    asked: list[Any] = [
        bound,
        [(0, b"".join(held(4, opaque=each) for each in range(6)))],
        later,
        QUIET,
    ]
    await compare_pulls(tmp_path, [*BEGIN, *asked], TOPICS)


async def test_held_pulls_of_a_lost_peer_are_dropped(tmp_path: Path) -> None:
    path = OnePath(tmp_path, TOPICS)
    path.peer()
    for turn in BEGIN:
        for number, data in turn:
            path.hear(number, data)
        await path.settle()
    path.hear(0, pulled(0, subscription="B"))  # the slow path compares the rejected tags codes
    path.hear(0, held(4))
    pulls = path.broker.requests.held_pulls
    assert (len(pulls), path.connection(0).held, path.pulls_missed) == (1, 1, 1)
    path.hear(0, pulled(4) + pulled(0, subscription="B"))
    assert (path.connection(0).held, path.pulls_missed) == (1, 3)
    pulls.drop_owner(path.connection(0))
    assert len(pulls) == 0
    await path.close()

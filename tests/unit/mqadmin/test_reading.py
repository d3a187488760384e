"""Slices of a queue: the last message of a slice under any answer of the broker."""

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from core_broker.client.admin import AdminClient
from core_broker.client.results import PullResult, PullStatus
from core_broker.message.model import MessageExt
from core_broker.mqadmin.reading import Slice
from core_broker.remoting.bodies import MessageQueue

QUEUE = MessageQueue(topic="T", broker_name="b", queue_id=0)


def message(offset: int) -> MessageExt:
    host = ("127.0.0.1", 1)
    return MessageExt("T", b"", {}, 0, offset, 0, 0, 0, 0, 0, host, 0, host, 0, 0, 0)


@dataclass
class Broker:
    """Answers pulls from a script and records offset and count of each request."""

    answers: list[PullResult]
    requests: list[tuple[int, int]] = field(default_factory=list)

    async def pull(
        self, addr: str, topic: str, queue_id: int, offset: int, count: int, *rest: Any
    ) -> PullResult:
        self.requests.append((offset, count))
        return self.answers.pop(0)


def found(first: int, end: int) -> PullResult:
    messages = [message(offset) for offset in range(first, end)]
    return PullResult(PullStatus.FOUND, messages, end, 0, 100)


async def read(broker: Broker, begin: int, end: int) -> list[int]:
    part = Slice(QUEUE, "h:1", begin, end)
    admin = cast(AdminClient, broker)
    return [it.queue_offset async for pull in part.pulls(admin, "*") for it in pull.messages]


async def test_a_slice_excludes_its_end() -> None:
    broker = Broker([found(0, 32), found(32, 64)])
    assert await read(broker, 0, 40) == list(range(40))
    assert broker.requests == [(0, 32), (32, 8)]


async def test_messages_have_the_name_of_their_broker() -> None:
    part = Slice(QUEUE, "h:1", 0, 1)
    admin = cast(AdminClient, Broker([found(0, 1)]))
    assert [it.broker_name async for pull in part.pulls(admin, "*") for it in pull.messages] == [
        "b"
    ]


async def test_messages_without_a_match_are_skipped() -> None:
    skipped = PullResult(PullStatus.NO_MATCHED_MSG, [], 5, 0, 100)
    assert await read(Broker([skipped, found(5, 7)]), 0, 7) == [5, 6]


@pytest.mark.parametrize("status", [PullStatus.NO_NEW_MSG, PullStatus.OFFSET_ILLEGAL])
async def test_a_slice_ends_with_the_queue(status: PullStatus) -> None:
    ended = PullResult(status, [], 9, 0, 2)
    assert await read(Broker([found(0, 2), ended]), 0, 7) == [0, 1]


async def test_pulls_end_without_progress_of_the_offset() -> None:
    stuck = PullResult(PullStatus.NO_MATCHED_MSG, [], 3, 0, 100)
    assert await read(Broker([stuck]), 3, 7) == []


async def test_an_empty_slice_sends_no_request() -> None:
    broker = Broker([])
    assert await read(broker, 4, 4) == []
    assert broker.requests == []

"""The live tail as server-sent events: new messages that pass the filter, and refused requests."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from console.areas.messages import tails
from tests.api.conftest import Api
from tests.api.traffic import Traffic, poll

STREAM = "text/event-stream"
WAIT_S = 60


def test_new_messages_are_streamed_as_events(api: Api, traffic: Traffic) -> None:
    topic = traffic.topic("streamed")
    traffic.send(topic, 1)
    answer = api("get", f"/topics/{topic}/tail?rate=500", Accept=STREAM)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == STREAM

    async def first_rows() -> list[Any]:
        stream: AsyncIterator[bytes] = aiter(answer.streaming_content)
        opened = await anext(stream)
        assert opened.startswith(b"event: rows\ndata: {")
        sent = asyncio.create_task(asyncio.to_thread(send_until, done := asyncio.Event()))
        try:
            async for event in stream:
                name, data = event.decode().strip().split("\n")
                assert name == "event: rows"
                if rows := json.loads(data.removeprefix("data: "))["rows"]:
                    return list(rows)
        finally:
            done.set()
            await sent
            await stream.aclose()  # type: ignore[attr-defined]
            await tails.stop_tails()
        return []

    def send_until(done: asyncio.Event) -> None:
        # The tail begins after its first poll: earlier messages are not part of the stream.
        def sent_and_seen() -> bool:
            traffic.send(topic, 1)
            return done.is_set()

        poll(sent_and_seen)

    rows = asyncio.run(asyncio.wait_for(first_rows(), WAIT_S))
    assert rows[0]["preview"].startswith("message 0")
    assert rows[0]["place"].startswith("broker-a:")


@pytest.mark.parametrize(
    ("query", "status"), [("sql=a+%3D+", 400), ("rate=7", 400), ("nothing=1", 400)]
)
def test_filters_that_cannot_be_used_are_refused(
    query: str, status: int, api: Api, traffic: Traffic
) -> None:
    answer = api("get", f"/topics/{traffic.topic('streamed')}/tail?{query}", Accept=STREAM)
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_the_tail_of_an_unknown_topic_is_404(api: Api) -> None:
    assert api("get", "/topics/no-such-topic/tail", Accept=STREAM).status_code == 404

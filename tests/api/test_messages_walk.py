"""All messages of a topic, page by page, during concurrent sends."""

import threading

import pytest

from tests.api.conftest import Api
from tests.api.stored import routed_topic
from tests.api.traffic import Traffic

STORED = 100_000
PAGE = 200


@pytest.mark.must_beat(6)
@pytest.mark.timeout(240)
def test_a_walk_by_cursor_meets_every_message_once_while_others_are_written(
    api: Api, traffic: Traffic
) -> None:
    topic = routed_topic(traffic, "walked", read_queue_nums=4, write_queue_nums=4)
    traffic.send_many(topic, (b"%d" % number for number in range(STORED)))
    first = api.get(f"/messages?topic={topic}&limit={PAGE}")
    assert first["total"] == STORED
    writing = Writing(traffic, topic)
    places: list[tuple[str, int, int]] = []
    times: list[int] = []
    answer = first
    while True:
        places += [
            (each["broker"], each["queue_id"], each["queue_offset"]) for each in answer["items"]
        ]
        times += [each["store_timestamp"] for each in answer["items"]]
        if answer["next_cursor"] is None:
            break
        answer = api.get(f"/messages?topic={topic}&limit={PAGE}&cursor={answer['next_cursor']}")
    assert writing.stop() > 0
    assert len(places) == STORED
    assert len(set(places)) == STORED
    by_queue: dict[int, list[int]] = {}
    for _broker, queue_id, offset in places:
        by_queue.setdefault(queue_id, []).append(offset)
    assert all(sorted(each) == list(range(len(each))) for each in by_queue.values())
    assert times == sorted(times, reverse=True)


class Writing:
    """Sends to a topic until stop()."""

    def __init__(self, traffic: Traffic, topic: str) -> None:
        self._traffic, self._topic = traffic, topic
        self._done = threading.Event()
        self._sent = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> int:
        """Stop sending; returns the number of sent messages."""
        self._done.set()
        self._thread.join()
        return self._sent

    def _run(self) -> None:
        while not self._done.is_set():
            self._traffic.send_many(self._topic, [b"later"] * 100)
            self._sent += 100
            self._done.wait(0.1)

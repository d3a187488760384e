"""The answer of the workers: a request never waits for a ping."""

from collections.abc import Iterator
from queue import SimpleQueue
from threading import Event

import pytest
from redis import RedisError

from console.services.jobs.workers import KEPT_MS, TOLD_MS, WorkerAnswer, WorkerPing

DEADLINE_S = 60


class Workers:
    """Workers that answer a ping when the test says so."""

    def __init__(self) -> None:
        self.asked, self.answers = Event(), SimpleQueue[bool | Exception]()
        self.now_ms, self.pings = 1_000_000, 0
        self.ping = WorkerPing(self._ping, lambda: self.now_ms)

    def _ping(self) -> bool:
        self.pings += 1
        self.asked.set()
        answer = self.answers.get(timeout=DEADLINE_S)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def finish(self, answer: bool | Exception) -> None:
        """Answer the running ping, and wait for its end."""
        assert self.asked.wait(DEADLINE_S)
        self.asked.clear()
        running = self.ping._running
        self.answers.put(answer)
        if running is not None:
            running.join(DEADLINE_S)
        assert self.ping._running is None


@pytest.fixture
def workers() -> Iterator[Workers]:
    made = Workers()
    yield made
    made.answers.put(False)  # ends a ping that still runs


def test_nobody_waits_for_a_ping(workers: Workers) -> None:
    assert workers.ping.last() is None, "unknown before the first answer"
    assert workers.ping.last() is None
    workers.finish(answer=True)
    assert workers.ping.last() == WorkerAnswer(1_000_000, answers=True)
    assert workers.pings == 1, "one ping at a time, and none while its answer is new"


def test_an_old_answer_is_told_with_its_time_and_asked_again(workers: Workers) -> None:
    workers.ping.last()
    workers.finish(answer=True)
    workers.now_ms += KEPT_MS + 1
    assert workers.ping.last() == WorkerAnswer(1_000_000, answers=True)
    workers.finish(answer=False)
    assert workers.ping.last() == WorkerAnswer(1_000_000 + KEPT_MS + 1, answers=False)


def test_an_answer_of_long_ago_is_not_told(workers: Workers) -> None:
    workers.ping.last()
    workers.finish(answer=True)
    workers.now_ms += TOLD_MS + 1
    assert workers.ping.last() is None
    workers.finish(answer=True)
    assert workers.ping.last() is not None


def test_an_answer_of_a_clock_that_was_set_back_is_not_told(workers: Workers) -> None:
    workers.ping.last()
    workers.finish(answer=True)
    workers.now_ms -= 3_600_000
    assert workers.ping.last() is None
    workers.finish(answer=False)
    assert workers.ping.last() == WorkerAnswer(1_000_000 - 3_600_000, answers=False)


def test_without_the_task_queue_the_workers_are_unknown(workers: Workers) -> None:
    workers.ping.last()
    workers.finish(RedisError("gone"))
    assert workers.ping.last() is None
    workers.finish(answer=True)
    assert workers.ping.last() is not None

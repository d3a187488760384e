"""remoting/iteration.py: answers that waited are sent at once, and never before the steps."""

import asyncio

import pytest

from core_broker.remoting.iteration import Iteration, IterationEnd
from core_broker.remoting.loop_watchdog import LoopWatchdog
from tests.support.eventually import eventually


class Writer:
    """A connection that records when its answers are sent."""

    def __init__(self, name: str, done: list[str]) -> None:
        self.name = name
        self._done = done

    def flush(self) -> None:
        self._done.append(f"sent {self.name}")

    def drop_answers(self) -> None:
        self._done.append(f"dropped {self.name}")


class Played:
    """An iteration whose write to the log is recorded; `in_write` runs once in the write."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.fails = False
        self.in_write: list[Writer] = []
        self.iteration = Iteration(
            IterationEnd(before_write=(self._write,)),
            lambda error, count: self.done.append(str(error)),
            LoopWatchdog("test"),
            1.0,
        )

    def _write(self) -> None:
        self.done.append("written")
        while self.in_write:
            self.confirm(self.in_write.pop())
        if self.fails:
            raise OSError("disk failed")

    def confirm(self, *names: Writer | str) -> None:
        """Answer requests that waited, as a finished flush does."""

        def answer() -> None:
            for name in names:
                writer = name if isinstance(name, Writer) else Writer(name, self.done)
                self.iteration.mark_dirty(writer)

        self.iteration.run_answers(answer)


@pytest.fixture
def played() -> Played:
    return Played()


async def test_answers_that_waited_are_sent_at_once_and_together(played: Played) -> None:
    played.confirm("a", "b")
    assert played.done == ["written", "sent a", "sent b"]
    played.confirm("c")
    assert played.done[3:] == ["written", "sent c"]


async def test_answers_that_waited_are_dropped_when_the_write_fails(played: Played) -> None:
    played.fails = True
    played.confirm("a")
    assert played.done == ["written", "disk failed", "dropped a"]


async def test_during_an_iteration_its_end_sends_the_answers(played: Played) -> None:
    played.iteration.begin()
    played.confirm("a")
    assert played.done == []
    played.iteration.mark_dirty(Writer("b", played.done))
    await eventually(lambda: played.done == ["written", "sent a", "sent b"])


async def test_answers_of_the_end_itself_wait_for_another_write(played: Played) -> None:
    """Otherwise they would be sent before the steps behind the step in hand."""
    played.in_write.append(Writer("late", played.done))
    played.confirm("a")
    assert played.done == ["written", "sent a"]
    await eventually(lambda: played.done[2:] == ["written", "sent late"])
    await asyncio.sleep(0)
    assert played.done == ["written", "sent a", "written", "sent late"]

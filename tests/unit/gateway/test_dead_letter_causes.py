"""The cause of a group's newest dead letter: asked once per letter, never older than its time."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from console.gateway.dead_letters import causes
from console.gateway.dead_letters.causes import Cause, newest_cause, newest_causes, newest_ms
from console.gateway.dead_letters.search import DeadLetterPage, search
from console.gateway.engine.answers import Answer
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.messages.stored import MessageRef
from tests.support.stored_messages import stored
from trace.codec import SubAfter

BROKER = BrokerRef("broker-a", 0, "192.0.2.1:10911")


class Letters:
    """The newest dead letter of a group, and the requests for it."""

    def __init__(self) -> None:
        self.died_ms, self.is_traced, self.asked = 1_000, True, 0

    async def search(self, _question: Any, group: str, limit: int) -> Answer[DeadLetterPage]:
        assert limit == 1
        self.asked += 1
        message = stored(0, 7, self.died_ms)
        message.topic = f"%DLQ%{group}"
        message.properties = {"UNIQ_KEY": f"id-{self.died_ms}"}
        return Answer(DeadLetterPage((MessageRef(BROKER, message),), 1, 1, 0, None), (), 0)

    async def records(self, _session: Any, msg_id: str) -> Any:
        names = {"request_id": "r", "msg_id": msg_id, "group": "billing"}
        end = SubAfter(**names, cost_ms=4, success=False, context_code=2)
        return ((end,) if self.is_traced else ()), ()


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> Letters:
    made = Letters()
    monkeypatch.setattr(causes, "records_of", made.records)
    return made


@pytest.fixture
async def session(
    letters: Letters, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ClusterSession]:
    found = ClusterSession("test", "192.0.2.1:9876")
    ask = found.ask

    async def answered(question: Any, *args: Any, **kwargs: Any) -> Any:
        asked = letters.search if question is search else ask
        return await asked(question, *args, **kwargs)

    monkeypatch.setattr(found, "ask", answered)
    yield found
    await found.close()


async def cause_of(session: ClusterSession, read_ms: int | None) -> causes.DeadLetterCause:
    """The cause without the cache of answers."""
    found = (await newest_cause.run(session, "billing", read_ms)).value
    assert found is not None
    return found


async def test_a_group_without_new_dead_letters_needs_no_request(
    session: ClusterSession, letters: Letters
) -> None:
    first = await cause_of(session, 1_000)
    assert (first.cause, first.died_ms) == (Cause.EXCEPTION, 1_000)
    assert await cause_of(session, 1_000) == first
    assert letters.asked == 1


async def test_a_new_dead_letter_has_its_own_cause(
    session: ClusterSession, letters: Letters
) -> None:
    await newest_causes.run(session, (("billing", 1_000),))
    letters.died_ms = 2_000
    found = (await newest_causes.run(session, (("billing", 2_000),))).value["billing"]
    assert (found.msg_id, found.died_ms) == ("id-2000", 2_000)
    assert newest_ms(2_000, found) == 2_000
    assert newest_ms(1_500, found) == 2_000, "a letter that came between both reads"
    assert newest_ms(2_000, None) == 2_000
    assert newest_ms(None, None) is None


async def test_an_unknown_cause_is_asked_again_after_a_minute(
    session: ClusterSession, letters: Letters, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0
    monkeypatch.setattr(causes, "monotonic", lambda: now_s)
    letters.is_traced = False
    assert (await cause_of(session, 1_000)).cause is Cause.NOT_TRACED
    letters.is_traced = True
    assert (await cause_of(session, 1_000)).cause is Cause.NOT_TRACED
    now_s += causes.NOT_TRACED_S
    assert (await cause_of(session, 1_000)).cause is Cause.EXCEPTION


async def test_an_unknown_cause_of_a_new_letter_is_asked_again_at_once(
    session: ClusterSession, letters: Letters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(causes, "time", lambda: 30.0)
    letters.is_traced = False
    assert (await cause_of(session, 1_000)).cause is Cause.NOT_TRACED
    letters.is_traced = True
    assert (await cause_of(session, 1_000)).cause is Cause.EXCEPTION


async def test_remembered_causes_are_bounded(
    session: ClusterSession, letters: Letters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(causes, "CAUSES_MAX", 2)
    for letters.died_ms in (1_000, 2_000, 3_000):
        await cause_of(session, letters.died_ms)
    await cause_of(session, 3_000)
    assert letters.asked == 3
    letters.died_ms = 1_000
    await cause_of(session, 1_000)
    assert letters.asked == 4

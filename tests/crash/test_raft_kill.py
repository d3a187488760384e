"""Members as processes under clients, while the leader is killed, paused and cut off.

No acknowledged command is lost, all members have applied the same commands in the same order, and
the history of every key is linearizable. `RAFT_ROUNDS` sets how many faults, `FIRST_SEED` which.
"""

import asyncio
import os
import random
from pathlib import Path

import pytest

from tests.support.eventually import eventually
from tests.support.linearizability import Operation, check_history
from tests.support.raft_hosts import Command
from tests.support.raft_processes import Answer, Processes, Question

pytestmark = pytest.mark.crash

ROUNDS = int(os.environ.get("RAFT_ROUNDS", "3"))
FIRST_SEED = int(os.environ.get("FIRST_SEED", "0"))
TICK_S = 0.05
#: Bound of a wait for a new leader or for agreement, seconds.
WAIT_S = 90.0
CLIENTS = 3
KEYS = 3
#: Acknowledged operations of the clients in each phase of a round.
PHASE_OPERATIONS = 15
FAULTS = ("kill", "cut", "pause", "kill two", "one way")


class History:
    """Clients of a group, one operation at a time each, and what they saw."""

    def __init__(self, group: Processes, dice: random.Random) -> None:
        self.acknowledged: set[int] = set()
        self.answers = 0
        #: Part of the keys: every round has its own, so that no search gets long.
        self.round = 0
        self._group = group
        self._dice = dice
        self._moment = 0
        self._operations: dict[int, Operation] = {}
        self._refused: set[int] = set()
        self._likely = 1
        self._clients = [asyncio.create_task(self._client()) for _ in range(CLIENTS)]

    async def more(self) -> None:
        """Wait until the clients got more answers."""
        wanted = self.answers + PHASE_OPERATIONS
        await eventually(lambda: self.answers >= wanted, WAIT_S)

    async def end(self) -> None:
        """Let the clients finish what they have begun."""
        clients, self._clients = self._clients, []
        await asyncio.gather(*clients)

    def check(self, done: list[int]) -> None:
        """Check what the clients saw against the commands that took effect, in order."""
        assert len(set(done)) == len(done), "a command was applied twice"
        assert self.acknowledged <= set(done), "an acknowledged command is lost"
        assert not self._refused & set(done), "a refused command took effect"
        seen = [
            operation
            for number, operation in self._operations.items()
            if operation.answer is not None or number in set(done)
        ]
        fault = check_history(seen)
        assert fault is None, fault

    async def _client(self) -> None:
        while self._clients:
            number = len(self._operations)
            key = f"{self.round}-{self._dice.randrange(KEYS)}"
            kind = self._dice.choice(("read", "write", "write", "swap"))
            expected = str(self._dice.randint(max(0, number - 6), number)) if kind == "swap" else ""
            operation = Operation(key, kind, self._now(), str(number), expected)
            self._operations[number] = operation
            if kind == "read":
                question = Question(key=key)
            else:
                condition = expected if kind == "swap" else None
                question = Question(Command(number, key, str(number), condition))
            await self._ask(number, operation, question)

    async def _ask(self, number: int, operation: Operation, question: Question) -> None:
        running = sorted(self._group.running)
        is_read = operation.kind == "read"
        if self._likely not in running or (is_read and self._dice.random() < 0.5):
            self._likely = self._dice.choice(running)
        node_id = self._likely
        answer = await self._group.ask(node_id, question)
        if answer.error:
            if answer.error == "refused":
                self._refused.add(number)
            self._likely = self._dice.choice(running)
            await asyncio.sleep(TICK_S)
            return
        operation.returned = self._now()
        operation.answer = self._text(operation, answer)
        self.answers += 1
        if not is_read:
            self.acknowledged.add(number)

    def _text(self, operation: Operation, answer: Answer) -> str:
        if operation.kind == "read":
            return answer.value
        return str(answer.held) if operation.kind == "swap" else ""

    def _now(self) -> int:
        self._moment += 1
        return self._moment


async def found_leader(group: Processes) -> int:
    return int(await eventually(group.leader, WAIT_S))


async def fault_round(group: Processes, history: History, fault: str, dice: random.Random) -> None:
    """Break something about the leader under load, wait for progress, and repair it."""
    leader = await found_leader(group)
    others = [each for each in group.links.ids if each != leader]
    await history.more()
    if fault == "kill":
        await group.kill(leader)
        await history.more()
        await group.start(leader)
    elif fault == "cut":
        group.links.isolate(leader)
        await history.more()
        group.links.mend()
    elif fault == "pause":
        group.pause(leader)
        await history.more()
        group.resume(leader)
    elif fault == "kill two":
        second = dice.choice(others)
        await group.kill(leader)
        await group.kill(second)
        await asyncio.gather(group.start(leader), group.start(second))
        await history.more()
    else:
        group.links.silence(leader, dice.choice(others))
        await history.more()
        group.links.mend()


async def all_answer_alike(group: Processes) -> list[Answer]:
    answers = [await group.ask(node_id, Question()) for node_id in group.links.ids]
    is_alike = all(
        not each.error and (each.done, each.values) == (answers[0].done, answers[0].values)
        for each in answers
    )
    return answers if is_alike else []


@pytest.mark.timeout(0 if ROUNDS > 10 else 120)
async def test_a_group_survives_the_loss_of_its_leaders(tmp_path: Path) -> None:
    dice = random.Random(FIRST_SEED)
    async with Processes(tmp_path, TICK_S) as group:
        history = History(group, dice)
        for number in range(ROUNDS):
            history.round = number
            fault = FAULTS[number % len(FAULTS)]
            try:
                await fault_round(group, history, fault, dice)
            except BaseException as failure:
                failure.add_note(f"in round {number}, {fault}, with FIRST_SEED={FIRST_SEED}")
                raise
        await history.end()
        answers = await eventually(lambda: all_answer_alike(group), WAIT_S)
        history.check(answers[0].done)
        assert history.acknowledged

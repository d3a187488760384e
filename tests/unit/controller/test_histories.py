"""Random histories: invariants, determinism, snapshots and repeated proposals."""

import random
from collections import Counter

import pytest

from core_broker.controller.commands import decode_command
from core_broker.controller.machine import ReplicasInfo
from tests.support.controller_histories import Invariants, encoded_history

SEEDS = range(60)
COMMANDS = 200


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_commands_make_the_same_state_also_behind_a_snapshot(seed: int) -> None:
    history = encoded_history(seed, COMMANDS)
    cut = random.Random(seed).randint(0, COMMANDS)
    whole, restored = ReplicasInfo(), ReplicasInfo()
    outcomes = [whole.apply(command) for command in history]
    for command in history[:cut]:
        restored.apply(command)
    second = ReplicasInfo()
    second.restore(restored.snapshot())
    assert second.snapshot() == restored.snapshot()
    assert [second.apply(command) for command in history[cut:]] == outcomes[cut:]
    assert second.snapshot() == whole.snapshot()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_command_that_is_applied_twice_changes_nothing_more(seed: int) -> None:
    machine, invariants = ReplicasInfo(), Invariants()
    for command in encoded_history(seed, COMMANDS):
        machine.apply(command)
        once = machine.snapshot()
        machine.apply(command)
        assert machine.snapshot() == once, decode_command(command)
        invariants.check(machine)


def test_histories_reach_every_outcome() -> None:
    outcomes: Counter[int] = Counter()
    stale = 0
    for seed in SEEDS:
        machine = ReplicasInfo()
        for command in encoded_history(seed, COMMANDS):
            outcome = machine.apply(command)
            outcomes[outcome.code] += 1
            stale += outcome.is_stale
    codes = {0, 2000, 2001, 2002, 2003, 2004, 2006, 2009, 2010, 2011, 2012, 2013, 2014}
    assert codes <= outcomes.keys(), outcomes
    assert stale

"""Simulated DLedger groups: crashes, partitions, full disks, late, repeated and lost messages.

Each seed must keep the promises of tests/support/dledger_group.py. DLEDGER_SEEDS sets the number.
"""

import os

import pytest

from tests.support.dledger_group import SimulatedGroup

SEEDS = int(os.environ.get("DLEDGER_SEEDS", "40"))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_committed_entry_is_lost(seed: int) -> None:
    group = SimulatedGroup((3, 3, 5, 1)[seed % 4], seed)
    random = group.random
    for _ in range(12):
        group.loss = random.choice((0.0, 0.0, 0.1, 0.4))
        group.crash_share = random.choice((0.0, 0.001, 0.01))
        group.cut = {
            (one, other)
            for one in group.names
            for other in group.names
            if random.random() < random.choice((0.0, 0.0, 0.3))
        }
        if random.random() < 0.3:
            alone = random.choice(group.names)
            group.cut |= {(alone, other) for other in group.names}
            group.cut |= {(other, alone) for other in group.names}
        for member in group.members.values():
            member.log.is_full = random.random() < 0.1
        if random.random() < 0.3:
            group.transfer(random.choice(group.names))
        group.run(random.randrange(1_000, 15_000), 40, group.write)
    group.loss, group.crash_share, group.cut = 0.0, 0.0, set()
    for member in group.members.values():
        member.log.is_full = False
    group.run(40_000)
    group.write(least=1)
    group.run(12_000)
    group.check_converged()
    assert group.committed or len(group.names) == 1


@pytest.mark.parametrize("lost", ["disk", "log", "tail"])
@pytest.mark.parametrize("seed", range(SEEDS // 4))
def test_a_member_that_lost_entries_elects_no_member_that_lags(seed: int, lost: str) -> None:
    """An entry of two members, of which one is down and the other has lost it, returns.

    The other has an empty disk, or has `currterm` and `checkpoint` with an empty log, as after a
    replaced disk of storePathDLedgerCommitLog, or with a log whose tail a power cut took.
    """
    group = SimulatedGroup(3, seed)
    group.run(15_000)
    group.write(least=1)
    group.run(3_000)
    leader = group.leader()
    assert leader is not None
    lagging, emptied = (name for name in group.names if name != leader)
    group.cut = {(lagging, name) for name in group.names}
    group.cut |= {(name, lagging) for name in group.names}
    group.run(6_000)  # late messages still arrive
    group.write(least=1)
    group.run(8_000)
    newest = max(group.committed)
    assert group.members[lagging].log.end_index < newest == group.members[leader].log.end_index
    assert group.members[emptied].checked == newest
    group.stop(leader)
    group.stop(emptied)
    if lost == "disk":
        group.wipe(emptied)
    else:
        group.lose(emptied, group.members[lagging].log.end_index if lost == "tail" else -1)
    group.cut = set()
    group.run(6_000)  # a connection delivers nothing to another process
    group.start(emptied)
    group.run(30_000)
    assert group.leader() is None
    group.start(leader)
    group.run(30_000)
    group.write(least=1)
    group.run(12_000)
    group.check_converged()
    # The member that has copied the log counts again.
    elected = group.leader()
    assert elected is not None
    group.stop(lagging if elected != lagging else leader)
    group.run(30_000)
    assert group.leader() is not None


@pytest.mark.parametrize("seed", range(SEEDS // 4))
def test_a_leader_without_space_hands_over(seed: int) -> None:
    group = SimulatedGroup(3, seed)
    group.run(15_000, 500, group.write)
    full = group.leader()
    assert full is not None
    group.members[full].log.is_full = True
    group.run(30_000)
    elected = group.leader()
    assert elected not in (None, full)
    newest = max(group.committed)
    group.write(least=1)
    group.run(5_000)
    assert max(group.committed) > newest, "the two others are a majority"


@pytest.mark.parametrize("seed", range(SEEDS // 4))
def test_a_leader_stays_when_all_disks_are_full(seed: int) -> None:
    group = SimulatedGroup(3, seed)
    group.run(15_000, 500, group.write)
    group.run(5_000)
    leader = group.leader()
    assert leader is not None
    node = group.members[leader].node
    assert node is not None
    term = node.term
    for member in group.members.values():
        member.log.is_full = True
    group.run(60_000)
    assert (group.leader(), node.term) == (leader, term)
    assert node.transferee is None


@pytest.mark.parametrize("seed", range(SEEDS // 4))
def test_a_preferred_member_leads_when_it_can(seed: int) -> None:
    group = SimulatedGroup(3, seed, preferred=("n2",))
    group.run(40_000, 500, group.write)
    assert group.leader() == "n2"
    group.stop("n2")
    group.run(20_000, 500, group.write)
    assert group.leader() in ("n0", "n1")
    group.start("n2")
    group.run(40_000, 500, group.write)
    assert group.leader() == "n2"
    group.run(12_000)
    group.check_converged()

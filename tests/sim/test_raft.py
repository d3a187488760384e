"""Simulated Raft clusters: safety on every event, linearizable histories, progress after faults.

`RAFT_SEEDS` sets how many clusters run, `RAFT_FIRST_SEED` where they begin; a failure prints the
command for a repetition.
"""

import dataclasses
import os
from pathlib import Path

import pytest

from core_broker.raft import storage
from core_broker.raft.leader import Leader
from core_broker.raft.log import RaftLog
from core_broker.raft.model import HardState
from core_broker.raft.node import RaftNode
from core_broker.raft.ready import Ready
from core_broker.raft.replication import Replication
from core_broker.store.simulated_files import SimulatedFiles
from tests.support.raft_runs import Run

FIRST_SEED = int(os.environ.get("RAFT_FIRST_SEED", "0"))
SEEDS = int(os.environ.get("RAFT_SEEDS", "300"))
#: Clusters of one test, about 0.4 s of CPU.
PER_TEST = 10
#: Clusters that once showed a defect, with the defect.
FAILED_ONCE = {
    1: "a slice that ends before the unstable entries contained some of them",
    5: "the same",
    7: "a leader could not read the snapshot that it was sending",
    3050: "the command of the end was accepted by a leader that then stepped down",
    5445: "the same",
    2468: "a node's own snapshot destroyed the one that it was receiving",
    5094: "a restart refused a batch that had replaced entries of a compacted segment",
}
#: Clusters until a planted defect must be found, from the first seed of the defect.
FOUND_WITHIN = 30


def run(seed: int) -> None:
    try:
        Run(seed).run()
    except BaseException as failure:
        failure.add_note(
            f"repeat: RAFT_SEEDS=1 RAFT_FIRST_SEED={seed} .venv/bin/python -m pytest"
            " tests/sim/test_raft.py -k survives -n0"
        )
        raise


@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + SEEDS, PER_TEST))
def test_a_cluster_survives_its_faults(first: int) -> None:
    for seed in range(first, min(first + PER_TEST, FIRST_SEED + SEEDS)):
        run(seed)


@pytest.mark.parametrize("seed", FAILED_ONCE)
def test_a_cluster_that_failed_once_survives(seed: int) -> None:
    run(seed)


# ---- the simulation finds defects ----------------------------------------------------------------


def forgotten_votes(patch: pytest.MonkeyPatch) -> None:
    """The hard state is written once, at the beginning."""
    save = storage._save_hard_state

    def save_first(files: SimulatedFiles, folder: Path, node_id: int, state: HardState) -> None:
        if not storage.RaftStorage.is_initialised(files, folder):
            save(files, folder, node_id, state)

    patch.setattr(storage, "_save_hard_state", save_first)


def early_promises(patch: pytest.MonkeyPatch) -> None:
    """Messages that promise entries or votes leave before the disk has them."""
    take = RaftNode.take_ready

    def take_early(node: RaftNode) -> Ready | None:
        ready = take(node)
        if ready is None:
            return None
        messages = ready.messages + ready.messages_after
        return dataclasses.replace(ready, messages=messages, messages_after=())

    patch.setattr(RaftNode, "take_ready", take_early)


def votes_for_any_log(patch: pytest.MonkeyPatch) -> None:
    """Voters do not compare logs."""
    patch.setattr(RaftLog, "is_up_to_date", lambda log, index, term: True)


def unconfirmed_reads(patch: pytest.MonkeyPatch) -> None:
    """A leader answers reads without an answer to its heartbeats."""
    patch.setattr(Replication, "quorum_round", lambda replication: replication._round)


def early_reads(patch: pytest.MonkeyPatch) -> None:
    """A leader serves reads and changes the membership before a commit in its term."""
    patch.setattr(Leader, "has_committed_in_term", True)


@pytest.mark.parametrize(
    ("plant", "first"),
    [
        (forgotten_votes, 0),
        (early_promises, 0),
        (votes_for_any_log, 0),
        (unconfirmed_reads, 90),
        (early_reads, 30),
    ],
)
def test_a_planted_defect_is_found(plant, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first seed keeps the test short; after a change of the core, search for a new one."""
    plant(monkeypatch)
    for seed in range(first, first + FOUND_WITHIN):
        try:
            Run(seed).run()
        except Exception:  # noqa: BLE001 - each defect shows in its own way
            return
    raise AssertionError(f"{FOUND_WITHIN} clusters ran without noticing the defect")

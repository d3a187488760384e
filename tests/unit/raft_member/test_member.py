"""Three members on real sockets: elections, proposals, reads, partitions, snapshots, changes."""

import asyncio
import contextlib
import errno
import logging
import threading
from pathlib import Path

import pytest

from core_broker.errors import StoreCorrupt
from core_broker.monitoring.metrics import METRIC_HELP, Metrics
from core_broker.raft.config import PROPOSAL_BYTES_MAX
from core_broker.raft.machine import NotLeader, ProposalUncertain
from core_broker.raft.membership import ChangeKind
from core_broker.raft.refusals import RaftRefused
from core_broker.raft_member.status import raft_families
from core_broker.store.simulated_files import SimulatedFiles
from tests.support.eventually import eventually
from tests.support.raft_members import WAIT_S, Group, service


async def test_a_group_elects_and_all_members_apply_what_was_proposed(tmp_path: Path) -> None:
    async with Group(tmp_path) as group:
        await asyncio.gather(*(group.commit(f"k{n}", "v") for n in range(200)))
        await group.agree()
        statuses = [member.status() for member in group.members.values()]
        assert sum(status.outcomes["applied"] for status in statuses) >= 200
        assert not any(status.waiting for status in statuses)
        for machine in group.machines.values():
            assert machine.values == {f"k{n}": "v" for n in range(200)}


async def test_a_proposal_returns_what_its_command_returned(tmp_path: Path) -> None:
    async with Group(tmp_path, ids=(1,)) as group:
        await group.leader()
        assert await group.write(1, "k", "v")
        assert not await group.write(1, "k", "x", expected="wrong")
        assert await group.write(1, "k", "w", expected="v")


async def test_a_follower_reads_behind_a_barrier(tmp_path: Path) -> None:
    async with Group(tmp_path) as group:
        leader = await group.leader()
        follower = next(each for each in group.members if each != leader)

        async def passed() -> bool:
            with contextlib.suppress(NotLeader):
                await group.members[follower].read_barrier()
                return True
            return False

        for n in range(20):
            await group.commit("k", str(n))
            await eventually(passed, WAIT_S)
            assert group.machines[follower].values["k"] == str(n)


async def test_a_follower_names_the_leader(tmp_path: Path) -> None:
    async with Group(tmp_path) as group:

        async def is_named() -> bool:
            leader = await group.leader()
            follower = next(each for each in group.members if each != leader)
            try:
                await group.write(follower, "k", "v")
            except NotLeader as refused:
                return refused.leader_addr == service(leader)
            return False

        await eventually(is_named, WAIT_S)


async def test_a_leader_without_quorum_acknowledges_and_confirms_nothing(tmp_path: Path) -> None:
    async with Group(tmp_path, outcome_timeout_s=2.0) as group:
        await group.commit("k", "before")
        old = await group.leader()
        group.links.isolate(old)
        lost = asyncio.gather(group.write(old, "k", "lost"), return_exceptions=True)
        with pytest.raises(NotLeader):
            await group.members[old].read_barrier()
        await group.commit("k", "after", old)
        (outcome,) = await lost
        assert isinstance(outcome, (ProposalUncertain, NotLeader))
        group.links.mend()
        await group.agree()
        assert {machine.values["k"] for machine in group.machines.values()} == {"after"}


async def test_a_lost_proposal_is_known_to_be_lost_once_its_place_is_taken(tmp_path: Path) -> None:
    async with Group(tmp_path, outcome_timeout_s=WAIT_S) as group:
        old = await group.leader()
        group.links.isolate(old)
        lost = asyncio.create_task(group.write(old, "k", "lost"))
        await asyncio.sleep(0)
        await group.commit("k", "kept", old)
        group.links.mend()
        with pytest.raises((NotLeader, ProposalUncertain)):
            await lost
        await group.agree()
        assert group.machines[old].values == {"k": "kept"}


async def test_a_member_that_missed_a_compacted_log_gets_the_snapshot(tmp_path: Path) -> None:
    async with Group(tmp_path, snapshot_entries=50, kept_entries=5) as group:
        leader = await group.leader()
        behind = next(each for each in group.members if each != leader)
        await group.stop(behind)
        for _ in range(4):
            await asyncio.gather(*(group.commit(f"k{n}", "v" * 1000) for n in range(40)))
        await eventually(
            lambda: all(each.status().snapshot_index > 50 for each in group.members.values()),
            WAIT_S,
        )
        member = await group.start(behind)
        await group.agree()
        assert member.status().events["snapshots_installed"] >= 1
        assert len(group.machines[behind].values) == 40


async def test_a_restart_restores_snapshot_and_log(tmp_path: Path) -> None:
    async with Group(tmp_path, snapshot_entries=30, kept_entries=5) as group:
        for n in range(70):
            await group.commit(f"k{n}", "v")
        leader = await group.leader()
        await eventually(lambda: group.members[leader].status().snapshot_index, WAIT_S)
        before = group.machines[leader].done
        for node_id in list(group.members):
            await group.stop(node_id)
        for node_id in group.links.ids:
            await group.start(node_id)
        await group.agree()
        for machine in group.machines.values():
            assert machine.done == before
            assert len(machine.values) == 70


async def test_a_stop_hands_the_leadership_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "core_broker.raft_member.member")
    async with Group(tmp_path) as group:
        await group.commit("k", "v")
        old = await group.leader()
        await group.stop(old, hand_over=True)
        await group.commit("k", "w")
        await group.agree()
        assert "hands the leadership to" in caplog.text


async def test_the_leadership_can_be_transferred(tmp_path: Path) -> None:
    async with Group(tmp_path) as group:
        old = await group.leader()
        target = next(each for each in group.members if each != old)
        await group.lead(target)
        with pytest.raises((NotLeader, RaftRefused)):
            await group.members[target].transfer_leadership(target)


async def test_members_join_and_leave(tmp_path: Path) -> None:
    async with Group(tmp_path, ids=(1, 2, 3, 4), initial_voters=(1, 2, 3)) as group:
        await group.commit("k", "v")
        await group.change(ChangeKind.ADD_LEARNER, 4)
        joining = group.members[4]
        await eventually(lambda: group.machines[4].values == {"k": "v"}, WAIT_S)
        await group.change(ChangeKind.ADD_VOTER, 4)
        await eventually(lambda: joining.membership.voters == (1, 2, 3, 4), WAIT_S)
        leader = await group.leader()
        gone = next(each for each in (1, 2, 3) if each != leader)
        await group.change(ChangeKind.REMOVE, gone)
        await group.stop(gone)
        await group.commit("k", "w")
        await group.agree()
        assert group.machines[4].values == {"k": "w"}
        with pytest.raises(ValueError, match="no address"):
            await joining.change_membership(ChangeKind.ADD_VOTER, 5)


async def test_a_single_member_leads_alone(tmp_path: Path) -> None:
    async with Group(tmp_path, ids=(7,)) as group:
        assert await group.leader() == 7
        assert await group.write(7, "k", "v")


# ---- limits and faults ---------------------------------------------------------------------------


async def test_a_command_above_the_limit_is_refused(tmp_path: Path) -> None:
    async with Group(tmp_path, ids=(1,)) as group:
        await group.leader()
        with pytest.raises(ValueError, match="at most"):
            await group.members[1].propose(bytes(PROPOSAL_BYTES_MAX + 1))
        assert await group.write(1, "k", "v" * (PROPOSAL_BYTES_MAX - 1_000))


async def test_the_largest_command_reaches_all_members(tmp_path: Path) -> None:
    async with Group(tmp_path) as group:
        value = "v" * (PROPOSAL_BYTES_MAX - 1_000)
        await asyncio.gather(*(group.commit(f"k{n}", value) for n in range(6)))
        await group.agree()


async def test_a_failed_write_ends_the_member_and_not_the_group(tmp_path: Path) -> None:
    files = SimulatedFiles()
    async with Group(tmp_path, files={2: files}) as group:
        await group.commit("k", "before")
        await group.agree()
        broken = group.members[2]

        def fail(operation: str, path: Path) -> None:
            raise OSError(errno.EIO, f"planted: {operation}", str(path))

        files.fault = fail
        leader = await group.leader()
        with contextlib.suppress(ProposalUncertain, NotLeader):
            await group.write(leader, "k", "during")
        async with asyncio.timeout(WAIT_S):
            assert "planted" in str(await broken.wait_failed())
        files.fault = None
        with pytest.raises(NotLeader):
            await group.write(2, "k", "x")
        with pytest.raises(NotLeader):
            await broken.read_barrier()
        applied = broken.status().applied_index
        await group.commit("k", "after", 2)
        assert broken.status().applied_index == applied
        assert group.machines[2].values["k"] != "after"
        await group.stop(2)
        await group.start(2)
        await group.agree()
        assert group.machines[2].values == {"k": "after"}


async def test_a_machine_that_raises_ends_the_member(tmp_path: Path) -> None:
    async with Group(tmp_path, ids=(1,)) as group:
        await group.leader()
        with pytest.raises(ProposalUncertain, match="failed"):
            await group.members[1].propose(b"no command")
        assert group.members[1].failure is not None
        assert not group.members[1].is_leader


async def test_a_hanging_disk_costs_the_leadership_and_nothing_else(tmp_path: Path) -> None:
    files, released = SimulatedFiles(), threading.Event()
    async with Group(tmp_path, files={1: files}) as group:
        await group.agree()
        await group.lead(1)

        def hang(operation: str, path: Path) -> None:
            released.wait(WAIT_S)

        files.fault = hang
        waiting = asyncio.create_task(group.write(1, "k", "slow"))
        try:
            await group.commit("k", "other", 1)
        finally:
            files.fault = None
            released.set()
        with contextlib.suppress(NotLeader, ProposalUncertain):
            await waiting
        await group.agree()
        assert group.members[1].failure is None


async def test_the_folder_of_another_cluster_is_refused(tmp_path: Path) -> None:
    async with Group(tmp_path, ids=(1,)) as group:
        await group.leader()
        await group.stop(1)
        with pytest.raises(StoreCorrupt, match="is of cluster"):
            await group.start(1, cluster_id="another")
        await group.start(1)
        await group.leader()


async def test_metrics_have_a_help_text_and_the_state(tmp_path: Path) -> None:
    async with Group(tmp_path) as group:
        await group.commit("k", "v")
        await group.agree()
        leader = await group.leader()
        families = list(raft_families(group.members[leader].status()))
        assert {family.name for family in families} <= set(METRIC_HELP)
        metrics = Metrics()
        metrics.source(lambda: families)
        text = (await metrics.render()).decode()
        assert 'rocketmq_raft_role{role="leader"}' in text
        assert 'rocketmq_raft_proposals_total{outcome="applied"}' in text
        assert "rocketmq_raft_proposal_latency" in text

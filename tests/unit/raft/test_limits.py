"""Limits and refusals of a node, and messages that no honest peer sends."""

import random

import msgspec
import pytest

from core_broker.raft.config import RaftConfig
from core_broker.raft.membership import ChangeKind
from core_broker.raft.messages import (
    AppendRequest,
    AppendResponse,
    Heartbeat,
    Message,
    ReadRequest,
    SnapshotChunk,
    VoteRequest,
    VoteResponse,
    decode_messages,
    encode_messages,
)
from core_broker.raft.model import MEMBERS_MAX, Entry, EntryKind, Membership, SnapshotMeta
from core_broker.raft.node import RaftNode
from core_broker.raft.refusals import RaftBroken, RaftRefused, Reason
from core_broker.raft.state import Role
from core_broker.store.simulated_files import SimulatedFiles
from tests.support.raft_hosts import FOLDER, Command, Host


def command(size: int = 0) -> bytes:
    return msgspec.json.encode(Command(1, "key", "v" * size))


def host(voters: tuple[int, ...] = (1, 2, 3), **settings: int | bool) -> Host:
    made = Host(RaftConfig(1, **settings), SimulatedFiles(), segment_bytes=400)
    made.initialise(Membership(voters))
    made.start(random.Random(1))
    return made


def drained(made: Host) -> list[Message]:
    """Execute all effects; return the messages."""
    messages: list[Message] = []
    while True:
        messages += made.take()
        if made.ready is None:
            return messages
        messages += made.finish()


def leader(**settings: int | bool) -> tuple[Host, RaftNode]:
    """Node 1 of three as the leader of term 1 with nothing committed."""
    made = host(pre_vote=False, **settings)
    node = made.node
    assert node is not None
    node.campaign()
    drained(made)
    node.receive(VoteResponse(2, 1, 1, is_granted=True, is_pre_vote=False))
    drained(made)
    assert node.status.role is Role.LEADER
    return made, node


def refusal(call) -> Reason:
    with pytest.raises(RaftRefused) as refused:
        call()
    return refused.value.reason


def test_proposals_are_bounded_in_size_and_in_sum() -> None:
    _, node = leader(proposal_bytes_max=200, uncommitted_bytes_max=400)
    assert refusal(lambda: node.propose(bytes(201))) is Reason.TOO_LARGE
    node.propose(bytes(200))
    assert refusal(lambda: node.propose(bytes(200))) is Reason.UNCOMMITTED_FULL
    node.receive(AppendResponse(2, 1, 1, index=1))  # the first entry is still uncommitted here
    assert refusal(lambda: node.propose(bytes(200))) is Reason.UNCOMMITTED_FULL


def test_committed_entries_free_the_room_of_proposals() -> None:
    made, node = leader(proposal_bytes_max=200, uncommitted_bytes_max=400)
    receipt = node.propose(command(100))
    drained(made)
    node.receive(AppendResponse(2, 1, 1, index=receipt.index))
    assert node.committed_index == receipt.index
    node.propose(bytes(200))


def test_one_follower_has_a_bounded_number_of_messages_in_flight() -> None:
    made, node = leader(in_flight_messages_max=2, message_bytes_max=1)
    node.receive(AppendResponse(2, 1, 1, index=1))
    for _ in range(9):
        node.propose(command())
    sent = [each for each in drained(made) if isinstance(each, AppendRequest) and each.target == 2]
    assert [entry.index for each in sent for entry in each.entries] == [2, 3]
    node.receive(AppendResponse(2, 1, 1, index=2))
    sent = [each for each in drained(made) if isinstance(each, AppendRequest) and each.target == 2]
    assert [entry.index for each in sent for entry in each.entries] == [4]


def test_reads_are_bounded() -> None:
    _, node = leader(pending_reads_max=2)
    node.read(1)
    node.receive(ReadRequest(2, 1, 1, context=9))
    assert refusal(lambda: node.read(2)) is Reason.READS_FULL
    node.receive(ReadRequest(2, 1, 1, context=10))  # dropped, without an effect on the others


def test_a_group_has_a_bounded_number_of_members() -> None:
    made, node = leader()
    node.receive(AppendResponse(2, 1, 1, index=1))
    for number in range(4, MEMBERS_MAX + 1):
        receipt = node.change_membership(ChangeKind.ADD_LEARNER, number)
        drained(made)
        node.receive(AppendResponse(2, 1, 1, index=receipt.index))
    add = lambda: node.change_membership(ChangeKind.ADD_LEARNER, MEMBERS_MAX + 1)  # noqa: E731
    assert refusal(add) is Reason.TOO_MANY_MEMBERS


@pytest.mark.parametrize(
    "settings",
    [
        {"node_id": 0},
        {"election_ticks": 1},
        {"heartbeat_ticks": 0},
        {"uncommitted_bytes_max": 10},
        {"in_flight_messages_max": 0},
        {"snapshot_chunk_bytes_max": 0},
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must"):
        RaftConfig(**{"node_id": 1, **settings})


@pytest.mark.parametrize(
    ("voters", "learners"),
    [((2, 1), ()), ((1, 1), ()), ((1,), (1,)), ((0,), ()), (tuple(range(1, 17)), ())],
)
def test_impossible_memberships_are_refused(
    voters: tuple[int, ...], learners: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match="member"):
        Membership(voters, learners)


def test_a_follower_refuses_gaps_and_falling_terms() -> None:
    for entries in (
        (Entry(2, 1, EntryKind.NOOP, b""),),
        (Entry(1, 1, EntryKind.NOOP, b""), Entry(3, 1, EntryKind.NOOP, b"")),
        (Entry(1, 1, EntryKind.NOOP, b""), Entry(2, 0, EntryKind.NOOP, b"")),
        (Entry(1, 3, EntryKind.NOOP, b""),),
    ):
        made = host()
        node = made.node
        assert node is not None
        node.receive(AppendRequest(2, 1, 2, 0, 0, entries, 0))
        assert node.last_index == 0


def test_a_membership_that_cannot_be_read_stops_the_node_before_the_log_changes() -> None:
    made = host()
    node = made.node
    assert node is not None
    bad = (Entry(1, 1, EntryKind.MEMBERSHIP, b"{"),)
    with pytest.raises(RaftBroken, match="membership"):
        node.receive(AppendRequest(2, 1, 1, 0, 0, bad, 0))
    assert node.last_index == 0


def test_a_snapshot_over_the_limit_stops_the_node() -> None:
    node = host(snapshot_bytes_max=100).node
    assert node is not None
    snapshot = SnapshotMeta(5, 1, Membership((1, 2, 3)), 101)
    with pytest.raises(RaftBroken, match="snapshot_bytes_max"):
        node.receive(SnapshotChunk(2, 1, 1, snapshot, 0, b"x"))


def test_a_follower_refuses_chunks_outside_of_their_snapshot() -> None:
    for size, offset, data in ((10, 0, b"x" * 11), (10, 5, b"x"), (10, 0, b"")):
        made = host(snapshot_bytes_max=100)
        node = made.node
        assert node is not None
        snapshot = SnapshotMeta(5, 1, Membership((1, 2, 3)), size)
        node.receive(SnapshotChunk(2, 1, 1, snapshot, offset, data))
        drained(made)
        assert "snapshot.part" not in made.files.names(FOLDER)


def test_a_node_that_lost_acknowledged_entries_stops() -> None:
    made = host()
    node = made.node
    assert node is not None
    with pytest.raises(RaftBroken, match="lost entries"):
        node.receive(Heartbeat(2, 1, 1, commit=4, round=1))


def test_a_second_leader_of_a_term_stops_the_node() -> None:
    _, node = leader()
    with pytest.raises(RaftBroken, match="both leaders"):
        node.receive(Heartbeat(3, 1, 1, commit=0, round=1))


def test_an_answer_beyond_the_log_is_ignored() -> None:
    _, node = leader()
    node.receive(AppendResponse(2, 1, 1, index=99))
    assert node.committed_index == 0
    assert node.match_indexes() == {2: 0, 3: 0}


def test_answers_of_strangers_and_messages_for_others_are_ignored() -> None:
    made, node = leader()
    node.receive(AppendResponse(9, 1, 1, index=1))
    node.receive(AppendResponse(2, 3, 1, index=1))
    node.receive(VoteResponse(1, 1, 9, is_granted=True, is_pre_vote=False))
    assert (node.committed_index, node.status.term) == (0, 1)
    assert drained(made) == []


def test_promises_leave_after_the_disk_has_them() -> None:
    made = host()
    node = made.node
    assert node is not None
    node.receive(VoteRequest(2, 1, 4, 0, 0, is_pre_vote=False))
    node.receive(AppendRequest(2, 1, 4, 0, 0, (Entry(1, 4, EntryKind.NOOP, b""),), 0))
    assert made.take() == ()
    node.receive(Heartbeat(2, 1, 4, commit=0, round=1))
    assert node.take_ready() is None, "a second Ready before the first is on disk"
    assert [type(each).__name__ for each in made.finish()] == ["VoteResponse", "AppendResponse"]
    assert made.storage is not None
    assert made.storage.hard_state.vote == 2


def test_messages_survive_their_encoding() -> None:
    messages = [
        VoteRequest(1, 2, 3, 4, 5, is_pre_vote=True),
        AppendRequest(1, 2, 3, 4, 3, (Entry(5, 3, EntryKind.NORMAL, b"x"),), 4),
        SnapshotChunk(1, 2, 3, SnapshotMeta(4, 3, Membership((1, 2))), 0, b"x"),
    ]
    assert decode_messages(encode_messages(messages)) == messages


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x91\x80", b"\x91\xc0", bytes(100)])
def test_bytes_that_are_no_messages_are_refused(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_messages(data)

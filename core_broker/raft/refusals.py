"""Why a node refuses a proposal, a change, a transfer or a read; and the error of a broken node."""

from enum import Enum

from core_broker.errors import GantryError


class Reason(Enum):
    """Cause of a refusal; nothing was written."""

    NOT_LEADER = "this node is not the leader"
    TRANSFERRING = "the leadership is being transferred"
    TOO_LARGE = "the data exceeds proposal_bytes_max"
    UNCOMMITTED_FULL = "too much data is not committed yet (uncommitted_bytes_max)"
    CHANGE_PENDING = "another membership change is not committed yet"
    NO_COMMIT_IN_TERM = "the leader has not committed an entry of its term yet"
    NO_CHANGE = "the membership already is as requested"
    LAST_VOTER = "the last voter cannot be removed"
    TOO_MANY_MEMBERS = "the group has the maximum number of members (MEMBERS_MAX)"
    NOT_A_VOTER = "the target of a transfer must be another voter"
    NO_LEADER = "no leader is known"
    READS_FULL = "too many reads wait for a confirmation (pending_reads_max)"


class RaftRefused(GantryError):
    """A node refused a request; `leader_id` is the node to ask, if known."""

    def __init__(self, reason: Reason, leader_id: int | None) -> None:
        self.reason = reason
        self.leader_id = leader_id
        hint = "" if leader_id is None else f"; the leader is node {leader_id}"
        super().__init__(f"Refused: {reason.value}{hint}.")


class RaftBroken(GantryError):
    """A guarantee of Raft does not hold, for example because a disk lost synced data.

    The node must stop. Remove the node from the group, and add a new node id: a node that has
    forgotten its votes must not return under its old id.
    """

"""A running member of a Raft group: event loop, disk thread and connections around the core.

    member        a replicated log for a program's state machine: start, propose, read, stop
    execution     executes the effects of the core in their order; takes snapshots
    outcomes      proposals and reads that wait for their outcome (waiting)
    opening       the folder of a member: first start, cluster id
    transport     messages to and from the other members: outbound, inbound, admission, frames
    status        state and counters, and their metrics
    settings      settings and limits

The core (`core_broker/raft`) decides what is right; this package decides when it happens.
"""

from core_broker.raft_member.member import RaftMember
from core_broker.raft_member.settings import MemberAddress, MemberSettings

__all__ = ["MemberAddress", "MemberSettings", "RaftMember"]

"""What a replicated program implements and uses: a state machine behind a replicated log.

    program  --propose-->  ReplicatedLog  --apply, on every member-->  StateMachine

All calls come from the event loop of the member, one at a time, so the program may read its state
machine between two calls without a lock. What it reads may be old: only a read behind
`read_barrier` sees every change that was acknowledged before.
"""

from typing import Any, Protocol

from core_broker.errors import GantryError


class StateMachine(Protocol):
    """State that is the same on all members after the same commands.

    A method that raises stops the member: its state could differ from that of the others.
    """

    def apply(self, command: bytes) -> Any:
        """Execute a command and return its result, which `propose` returns to the proposer.

        The result and the new state depend on the state before and the command only: no clock, no
        randomness, no I/O. A command that cannot be executed is a result too, not an exception. The
        event loop waits for the method. After a restart commands are applied again, from the state
        of the last snapshot on.
        """

    def snapshot(self) -> bytes:
        """Return the whole state; the event loop waits for the method."""

    def restore(self, data: bytes) -> None:
        """Replace the whole state by that of `snapshot`, maybe of another member."""


class ReplicatedLog(Protocol):
    """A member of a group that agrees on one order of commands."""

    @property
    def leader_id(self) -> int | None:
        """Id of the leader as far as this member knows."""

    @property
    def is_leader(self) -> bool:
        """Whether this member believes to lead; only an applied command or a barrier proves it."""

    async def propose(self, command: bytes) -> Any:
        """Replicate a command; return the result of its `apply` on this member.

        A returned result survives the loss of any minority of the members. Raises NotLeader and
        ProposalsFull: the command has no effect and never will; ProposalUncertain: the command may
        have taken effect, may do so later, or never; ValueError for a command above
        `PROPOSAL_BYTES_MAX`.
        """

    async def read_barrier(self) -> None:
        """Return once this member's state machine has all changes acknowledged before the call.

        Works on every member. Raises NotLeader when no leader confirmed the barrier in time, and
        ProposalsFull when too many barriers wait.
        """


class NotLeader(GantryError):
    """This member does not lead, or has stopped; nothing was changed."""

    def __init__(self, leader_addr: str | None = None) -> None:
        #: Address at which the leader serves its clients, None when no leader is known.
        self.leader_addr = leader_addr
        where = "no leader is known" if leader_addr is None else f"the leader is {leader_addr}"
        super().__init__(f"This member does not lead the group; {where}.")


class ProposalsFull(GantryError):
    """Too many requests wait, or the leadership is being handed over; retry after a pause."""


class ProposalUncertain(GantryError):
    """The command's outcome is unknown: the leadership was lost, or no quorum answered in time.

    The proposer finds out by a read behind a barrier, or proposes again if the command may be
    executed twice.
    """

"""A member of a Raft group: a replicated log for the state machine of a program.

    start → elect, propose, read_barrier, change_membership, transfer_leadership → stop
          ↘ a fault of disk, machine or core ends the member for ever: `wait_failed`

A member that failed answers nothing and must not be started again in the same process: only a new
start, which reads the disk again, can tell what was written. The program should end.
"""

import asyncio
import logging
import random
import secrets
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from core_broker.raft.machine import NotLeader, ProposalsFull, ProposalUncertain, StateMachine
from core_broker.raft.membership import ChangeKind
from core_broker.raft.messages import AnyMessage
from core_broker.raft.model import Membership
from core_broker.raft.node import RaftNode
from core_broker.raft.ready import Receipt, Status
from core_broker.raft.refusals import RaftRefused, Reason
from core_broker.raft.storage import RaftStorage
from core_broker.raft_member.execution import Execution
from core_broker.raft_member.opening import open_storage
from core_broker.raft_member.outcomes import Outcomes
from core_broker.raft_member.settings import MemberAddress, MemberSettings
from core_broker.raft_member.status import MemberStatus, PeerStatus
from core_broker.raft_member.transport import Transport
from core_broker.raft_member.waiting import BARRIERS_MAX, PROPOSALS_MAX
from core_broker.store.files import DiskFiles, Files

#: Maximum wait of a stop for the disk, seconds; a folder stays locked until the process ends.
STOP_TIMEOUT_S = 10.0
#: Ticks after which a follower asks the leader again for a barrier: messages may be lost.
_READ_RETRY_TICKS = 5
#: Bits of the random start of the contexts of reads, which are never used twice.
_CONTEXT_BITS = 60

T = TypeVar("T")
log = logging.getLogger(__name__)


class RaftMember:
    """Implements `ReplicatedLog`. Event loop only."""

    def __init__(
        self,
        settings: MemberSettings,
        machine: StateMachine,
        files: Files | None = None,
        source: random.Random | None = None,
    ) -> None:
        """Prepare a member for an empty machine. Raises ValueError for invalid settings."""
        #: Why the member stopped by itself.
        self.failure: Exception | None = None
        self._settings = settings
        self._machine = machine
        self._files = files or DiskFiles()
        self._random = source or random.Random()
        self._transport = Transport(settings, self._received)
        self._node: RaftNode | None = None
        self._storage: RaftStorage | None = None
        self._execution: Execution | None = None
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None
        self._failed = asyncio.Event()
        self._context = secrets.randbits(_CONTEXT_BITS)
        self._outcomes = Outcomes(settings, lambda: self.leader_addr)

    # -- life --

    @property
    def status_listeners(self) -> list[Callable[[Status], None]]:
        """Called with every change of role, term or leader, once its effects are executed."""
        return self._outcomes.status_listeners

    async def start(self) -> int:
        """Read the folder, restore the machine, listen and take part; return the own port.

        Raises StoreCorrupt, StoreLocked, RaftBroken and OSError; the member is then not started.
        """
        settings = self._settings
        storage, state = await asyncio.to_thread(open_storage, settings, self._files)
        try:
            self._node = RaftNode(settings.config, storage, self._random)
            if state is not None:
                self._machine.restore(state)
            self._execution = Execution(
                *(settings, self._node, storage, self._machine),
                *(self._transport.send, self._outcomes),
            )
            port = await self._transport.start()
        except BaseException:
            self._node = self._execution = None
            await self._transport.close()
            storage.close()
            raise
        self._storage = storage
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._run(self._execution))
        self._timer = loop.call_later(settings.tick_s, self._tick)
        if self._node.membership.voters == (settings.node_id,):
            self._feed(self._node.campaign)  # nobody else can lead
        return port

    async def stop(self, *, hand_over: bool = True) -> None:
        """Hand the leadership over if possible, finish the effects under way, release the folder.

        Proposals that still wait end as uncertain.
        """
        if self._execution is None or self._task is None:
            return
        if hand_over and self.is_leader:
            await self._hand_over()
        execution, self._execution = self._execution, None
        self._end("The member stops.")
        execution.stop()
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await asyncio.shield(self._task)
                await self._transport.close()
                await execution.close()
        except TimeoutError:
            log.critical("member %d: the disk does not answer; stopped", self._settings.node_id)
            await self._transport.close()

    async def wait_failed(self) -> Exception:
        """Return the fault that ended the member; waits for ever while there is none."""
        await self._failed.wait()
        assert self.failure is not None
        return self.failure

    # -- the replicated log --

    @property
    def leader_id(self) -> int | None:
        """Id of the leader as far as this member knows."""
        return None if self._node is None or not self._is_working else self._node.status.leader_id

    @property
    def leader_addr(self) -> str | None:
        """Address at which the leader serves its clients, None when unknown."""
        address = self._transport.addresses.get(self.leader_id or 0)
        return None if address is None else address.service

    @property
    def is_leader(self) -> bool:
        """Whether this member believes to lead."""
        return self.leader_id == self._settings.node_id

    async def propose(self, command: bytes) -> Any:
        """Replicate a command and return the result of its `apply`; see `ReplicatedLog`."""
        bytes_max = self._settings.config.proposal_bytes_max
        if len(command) > bytes_max:
            raise ValueError(f"a command of {len(command)} bytes; at most {bytes_max}")
        return await self._outcome(lambda node: node.propose(command))

    async def read_barrier(self) -> None:
        """Wait until the machine has all changes acknowledged before; see `ReplicatedLog`."""
        settings = self._settings
        try:
            async with asyncio.timeout(settings.outcome_timeout_s):
                while True:
                    try:
                        async with asyncio.timeout(
                            None if self.is_leader else _READ_RETRY_TICKS * settings.tick_s
                        ):
                            index = await self._confirmed_index()
                            break
                    except TimeoutError:
                        continue
                execution = self._execution
                if execution is None:
                    raise NotLeader
                if execution.applied_index < index:
                    await self._outcomes.reads.until_applied(index)
        except TimeoutError:
            raise NotLeader(self.leader_addr) from None

    async def _confirmed_index(self) -> int:
        reads = self._outcomes.reads
        if len(reads) >= BARRIERS_MAX:
            raise ProposalsFull(f"{BARRIERS_MAX} barriers wait already.")
        self._context += 1
        context = self._context
        self._request(lambda node: node.read(context))
        future = reads.add(context)
        try:
            return await future
        finally:
            reads.forget(context)

    # -- the group --

    @property
    def membership(self) -> Membership:
        """The membership that holds; empty before the start."""
        return Membership() if self._node is None else self._node.membership

    def set_addresses(self, addresses: Mapping[int, MemberAddress]) -> None:
        """Take new addresses of members: first on all members, then change the membership."""
        self._transport.set_addresses(addresses)

    async def change_membership(self, kind: ChangeKind, node_id: int) -> None:
        """Add or remove one member as the leader; returns when the change is committed.

        A new voter should first be a learner until it has caught up (`status().peers`). Raises
        RaftRefused when the change is not possible now, ValueError for an addition without an
        address, else as `propose`.
        """
        if kind is not ChangeKind.REMOVE and node_id not in self._transport.addresses:
            raise ValueError(f"member {node_id} has no address; see set_addresses")
        await self._outcome(lambda node: node.change_membership(kind, node_id))

    async def transfer_leadership(self, target: int) -> None:
        """Hand the leadership to another voter; returns when this member leads no more.

        Raises RaftRefused for no voter, NotLeader, and TimeoutError when the target did not take
        over within an election timeout: this member then leads on.
        """
        self._request(lambda node: node.transfer_leadership(target))
        async with asyncio.timeout(self._settings.election_timeout_s):
            # The listeners have no order, so the wait polls.
            while self.is_leader:  # noqa: ASYNC110
                await asyncio.sleep(self._settings.tick_s / 2)

    async def _hand_over(self) -> None:
        assert self._node is not None
        matches = self._node.match_indexes()
        voters = [each for each in self.membership.voters if each != self._settings.node_id]
        if voters:
            target = max(voters, key=lambda each: matches.get(each, 0))
            log.info("member %d hands the leadership to %d", self._settings.node_id, target)
            try:
                await self.transfer_leadership(target)
            except (RaftRefused, NotLeader, TimeoutError) as error:
                log.warning("the leadership was not handed to member %d: %s", target, error)

    # -- observation --

    def status(self) -> MemberStatus:
        """Return state and counters; only behind a successful `start`."""
        node, storage = self._node, self._storage
        assert node is not None
        assert storage is not None
        execution, transport = self._execution, self._transport
        matches, dropped = node.match_indexes(), transport.dropped
        peers = {
            each: PeerStatus(is_connected, dropped[each], matches.get(each))
            for each, is_connected in transport.connected.items()
        }
        applied = node.applied_index if execution is None else execution.applied_index
        taken = 0 if execution is None else execution.snapshots.taken
        return MemberStatus(
            role=node.status.role,
            term=node.status.term,
            leader_id=self.leader_id,
            voters=node.membership.voters,
            learners=node.membership.learners,
            last_index=node.last_index,
            commit_index=node.committed_index,
            applied_index=applied,
            snapshot_index=storage.snapshot.index,
            log_bytes=storage.log_bytes,
            waiting=len(self._outcomes.proposals),
            peers=peers,
            outcomes=Counter(self._outcomes.counters),
            events=Counter({**self._outcomes.events, "snapshots_taken": taken}),
            latencies_ms=tuple(self._outcomes.latencies_ms),
            failure=None if self.failure is None else str(self.failure),
        )

    # -- events of the core --

    @property
    def _is_working(self) -> bool:
        return self._execution is not None and self.failure is None

    def _received(self, messages: list[AnyMessage]) -> None:
        node = self._node
        if node is not None:
            for message in messages:
                self._feed(partial(node.receive, message))

    def _tick(self) -> None:
        if self._node is not None and self._is_working:
            self._timer = asyncio.get_running_loop().call_later(self._settings.tick_s, self._tick)
            self._feed(self._node.tick)

    def _feed(self, event: Callable[[], None]) -> None:
        """Give the core an event; with a disk that hangs the event is lost."""
        execution = self._execution
        if execution is None or self.failure is not None or execution.is_full:
            return
        try:
            event()
        except Exception as error:  # noqa: BLE001 - the node may have done half of a change
            self._fail(error)
            return
        execution.wake()

    def _request(self, request: Callable[[RaftNode], T]) -> T:
        """Ask the core for something; its refusals become the errors of the replicated log."""
        node, execution = self._node, self._execution
        if node is None or execution is None or self.failure is not None:
            raise NotLeader
        try:
            answer = request(node)
        except RaftRefused as refusal:
            if refusal.reason in (Reason.NOT_LEADER, Reason.NO_LEADER):
                raise NotLeader(self.leader_addr) from None
            if refusal.reason in (Reason.TRANSFERRING, Reason.UNCOMMITTED_FULL, Reason.READS_FULL):
                raise ProposalsFull(str(refusal)) from None
            raise
        execution.wake()
        return answer

    async def _outcome(self, request: Callable[[RaftNode], Receipt]) -> Any:
        """Request an entry and wait for its result; counts the outcome."""
        with self._outcomes.counted():
            receipt = self._proposed(request)
            future = self._outcomes.proposals.add(receipt)
            try:
                async with asyncio.timeout(self._settings.outcome_timeout_s):
                    return await future
            except TimeoutError:
                timeout_s = self._settings.outcome_timeout_s
                raise ProposalUncertain(f"No quorum confirmed within {timeout_s} s.") from None
            finally:
                self._outcomes.proposals.forget(receipt, future)

    def _proposed(self, request: Callable[[RaftNode], Receipt]) -> Receipt:
        if len(self._outcomes.proposals) >= PROPOSALS_MAX:
            raise ProposalsFull(f"{PROPOSALS_MAX} proposals wait already.")
        return self._request(request)

    # -- ends --

    async def _run(self, execution: Execution) -> None:
        try:
            await execution.run()
        except Exception as error:  # noqa: BLE001 - whatever failed, the disk's state is unknown
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """End the member for ever."""
        if self.failure is not None:
            return
        self.failure = error
        log.critical("member %d stops for ever: %s", self._settings.node_id, error, exc_info=error)
        self._end(f"The member failed: {error}")
        if self._execution is not None:
            self._execution.stop()
        self._closing = asyncio.get_running_loop().create_task(self._transport.close())
        self._failed.set()

    def _end(self, sentence: str) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._outcomes.proposals.end_all(sentence)
        self._outcomes.reads.end_all()

"""A running member: inputs to its node, effects of the node, and what its owner hears.

    request, answer, tick, own append → node → effects in order → role and commit index

`inputs.py` lets one input wait for the effects of another; `execution.py` executes effects. A
member that cannot keep its promises, for example on a failed disk, leaves the group until the
broker starts again: it closes its connections, and the other members vote.
"""

import asyncio
import logging
import random
from pathlib import Path
from typing import Any

from core_broker.config import BrokerConfig
from core_broker.dledger.checkpoint import CHECKPOINT_S, Ends, load_commit_index, save_ends
from core_broker.dledger.clients import answer_to_client
from core_broker.dledger.entry_store import EntryStore
from core_broker.dledger.execution import Execution, Means
from core_broker.dledger.inputs import Inputs, Step
from core_broker.dledger.messages import (
    AnyRequest,
    HeartbeatRequest,
    PushRequest,
    TransferRequest,
    VoteRequest,
)
from core_broker.dledger.model import Role
from core_broker.dledger.node import Node
from core_broker.dledger.owner import Hooks, Standing
from core_broker.dledger.peers import Group
from core_broker.dledger.state_files import load_term
from core_broker.dledger.transport import Token, Transport
from core_broker.errors import StoreReadOnly
from core_broker.ha.master import monotonic_ms
from core_broker.store import MessageStore

#: Interval of `Node.tick`, seconds.
TICK_S = 0.05
#: Patience with a leader whose connection is lost, ms: the first number plus a random part of the
#: second. An idle leader sends something each second.
PATIENCE_MS = (1200, 600)

log = logging.getLogger(__name__)


class Member:
    """One member of a group in a broker."""

    def __init__(
        self, group: Group, store: MessageStore, config: BrokerConfig, hooks: Hooks
    ) -> None:
        """Prepare; raises SettingsError for an invalid haAllowedAddresses."""
        self.group = group
        self._store = store
        self._hooks = hooks
        self._folder: Path = config.d_ledger_dir
        self._transport = Transport(group, config, self._requested, self._lost)
        self._inputs = Inputs(self._take)
        self._node: Node | None = None
        self._execution: Execution | None = None
        self._standing = Standing(Role.CANDIDATE, 0, None)
        self._transferee: str | None = None
        self._commit_index = -1
        self._timers: list[asyncio.Task[None]] = []
        self._leaving: asyncio.Task[None] | None = None
        self._failure = ""

    # -- life --

    async def start(self) -> None:
        """Load term and vote, listen, and begin as a candidate.

        Raises CannotListen, and StoreCorrupt for a damaged `currterm`. A member that cannot write
        the loss of committed entries takes no part, and reports the problem.
        """
        means = Means(
            *(self.group, self._store, EntryStore(self._store), self._transport, self._hooks),
            term_path=self._folder / "currterm",
        )
        saved = await asyncio.to_thread(load_term, means.term_path)
        entries = self._store.entries
        assert entries is not None
        try:
            found = await load_commit_index(self._folder, saved, entries.end_index)
        except OSError as error:
            log.exception("This member takes no part in its DLedger group")
            self._fail(error)
            return
        self._node = Node(
            *(self.group.name, self.group.self_id, tuple(self.group.members), means.log),
            term=found.term_and_vote.term,
            vote=found.term_and_vote.vote,
            commit_index=found.commit_index,
            is_new=found.term_and_vote.is_new,
            preferred=self.group.preferred,
        )
        self._execution = Execution(self._node, means, self._inputs, self._note, self._fail)
        self._commit_index = found.commit_index
        self._store.gate.confirm(entries.end_position(found.commit_index))
        self._store.write_listeners.append(self._written)
        await self._transport.start()
        loop = asyncio.get_running_loop()
        self._timers = [loop.create_task(self._tick()), loop.create_task(self._checkpoint())]

    async def stop(self) -> None:
        """Close the port, and write the checkpoint."""
        if self._execution is None:
            return
        for task in self._timers:
            task.cancel()
        if self._leaving is not None:
            await self._leaving
        else:
            await self._transport.close()
        await asyncio.gather(*self._timers, self._execution.close(), return_exceptions=True)
        if self._written in self._store.write_listeners:
            self._store.write_listeners.remove(self._written)
        await save_ends(self._checkpoint_path, self._ends)

    @property
    def _checkpoint_path(self) -> Path:
        return self._folder / "checkpoint"

    @property
    def _ends(self) -> Ends:
        entries = self._store.entries
        assert entries is not None
        return Ends(entries.end_index, self._commit_index)

    # -- state --

    @property
    def standing(self) -> Standing:
        """Role, term and leader."""
        return self._standing

    @property
    def commit_index(self) -> int:
        """The last committed entry."""
        return self._commit_index

    @property
    def problem(self) -> str:
        """Why the member is no working part of its group, "" when it is."""
        if self._failure or self._node is None:
            return self._failure or "the member has not started"
        return self._node.problem

    def varz(self) -> dict[str, Any]:
        """Return the state for /varz."""
        entries = self._store.entries
        assert entries is not None
        return {
            "group": self.group.name,
            "self_id": self.group.self_id,
            "role": self._standing.role.value,
            "term": self._standing.term,
            "leader": self._standing.leader_id or "",
            "begin_index": entries.begin_index,
            "end_index": entries.end_index,
            "commit_index": self._commit_index,
            "followers": {} if self._node is None else self._node.matches,
            "transferee": self._transferee or "",
            "dropped_inputs": self._inputs.dropped,
            "problem": self.problem or ("" if self._node is None else self._node.vote_problem),
        }

    # -- inputs --

    def _take(self, step: Step) -> None:
        if self._failure:
            return
        assert self._execution is not None
        try:
            step()
            self._execution.run()
        except Exception as error:
            log.exception("This member leaves its DLedger group")
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Leave the group: a member that cannot keep its promises must not make more."""
        if self._failure:
            return
        self._failure = f"{type(error).__name__}: {error}; start the broker again"
        self._inputs.clear()
        self._set_standing(Standing(Role.CANDIDATE, self._standing.term, None))
        if self._execution is not None:
            # The end of its connections tells the other members that a leader is gone.
            self._leaving = asyncio.get_running_loop().create_task(self._transport.close())

    async def _tick(self) -> None:
        while True:
            self._inputs.put(self._ticked)
            await asyncio.sleep(TICK_S)

    def _ticked(self) -> None:
        assert self._node is not None
        self._hooks.flush()
        if self._store.health.has_failed:
            raise StoreReadOnly(self._store.health.reason or "the disk of the store failed")
        self._node.set_writable(self._store.read_only_reason is None)
        self._node.tick(monotonic_ms())

    def _written(self) -> None:
        """The broker has written messages."""
        if self._standing.role is Role.LEADER:
            self._inputs.put(self._appended)

    def _appended(self) -> None:
        assert self._node is not None
        self._node.appended(monotonic_ms())

    def _lost(self, leader: str) -> None:
        def step() -> None:
            assert self._node is not None
            patience_ms = PATIENCE_MS[0] + random.randrange(PATIENCE_MS[1])
            self._node.suspect(leader, patience_ms, monotonic_ms())

        self._inputs.put(step)

    def _requested(self, request: AnyRequest, token: Token) -> None:
        _, frame = token
        self._inputs.put(lambda: self._serve(request, token), len(frame.body))

    def _serve(self, request: AnyRequest, token: Token) -> None:
        node, now_ms = self._node, monotonic_ms()
        assert node is not None
        self._hooks.flush()
        if isinstance(request, PushRequest):
            node.push_requested(request, token, now_ms)
        elif isinstance(request, VoteRequest):
            node.vote_requested(request, token, now_ms)
        elif isinstance(request, HeartbeatRequest):
            node.heartbeat_requested(request, token, now_ms)
        elif isinstance(request, TransferRequest):
            node.transfer_requested(request, token, now_ms)
        else:
            answer = answer_to_client(self.group, self._standing, request)
            self._transport.answer(token, answer)

    # -- results --

    def _note(self) -> None:
        """Tell the owner what changed."""
        node, entries = self._node, self._store.entries
        assert node is not None
        assert entries is not None
        self._set_standing(Standing(node.role, node.term, node.leader_id))
        if node.transferee != self._transferee:
            self._transferee = node.transferee
            self._hooks.handing_over(self._transferee)
        if node.commit_index > self._commit_index:
            self._commit_index = node.commit_index
            self._store.gate.confirm(entries.end_position(self._commit_index))
            self._hooks.committed()

    def _set_standing(self, standing: Standing) -> None:
        if standing != self._standing:
            self._standing = standing
            self._hooks.changed(standing)

    async def _checkpoint(self) -> None:
        while True:
            await asyncio.sleep(CHECKPOINT_S)
            await save_ends(self._checkpoint_path, self._ends)

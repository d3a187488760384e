"""A running member: executes the effects of its node on disk, store and sockets.

    request, answer, tick, own append → node → effects in order → role and commit index

Effects that wait for the disk (term and vote) or stop the store (truncation) run in a task; what
arrives meanwhile waits in a bounded queue. Event loop only, except the writes of term and vote.
"""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core_broker.config import BrokerConfig
from core_broker.dledger.clients import answer_to_client
from core_broker.dledger.codes import DLedgerCode, PushKind
from core_broker.dledger.entry_store import EntryStore
from core_broker.dledger.messages import (
    AnyRequest,
    AnyResponse,
    Entry,
    HeartbeatRequest,
    PushRequest,
    PushResponse,
    Response,
    VoteRequest,
    VoteResponse,
    push_request,
)
from core_broker.dledger.model import (
    Answer,
    Effect,
    EntriesGone,
    LogRefused,
    Push,
    Role,
    SaveTerm,
    Send,
    Truncate,
)
from core_broker.dledger.node import Node
from core_broker.dledger.owner import Hooks, Standing
from core_broker.dledger.peers import Group
from core_broker.dledger.state_files import (
    TermAndVote,
    load_committed,
    load_term,
    save_committed,
    save_term,
)
from core_broker.dledger.transport import Token, Transport
from core_broker.errors import GantryError
from core_broker.ha.master import monotonic_ms
from core_broker.store import ColdRead, MessageStore

#: Interval of `Node.tick`, seconds.
TICK_S = 0.05
#: Interval of the checkpoint, seconds: DLedger's.
CHECKPOINT_S = 3.0
#: Inputs that wait for the disk; further requests are dropped, and asked again.
INPUTS_MAX = 4096
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
        self._log = EntryStore(store)
        self._node: Node | None = None
        self._standing = Standing(Role.CANDIDATE, 0, None)
        self._commit_index = -1
        self._is_busy = False
        self._inputs: deque[Callable[[], None]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: list[asyncio.Task[None]] = []
        self._failure = ""

    # -- life --

    async def start(self) -> None:
        """Load term and vote, listen, and begin as a candidate.

        Raises CannotListen, and StoreCorrupt for a damaged `currterm`.
        """
        saved = await asyncio.to_thread(load_term, self._term_path)
        committed = await asyncio.to_thread(load_committed, self._checkpoint_path)
        entries = self._store.entries
        assert entries is not None
        committed = min(committed, entries.end_index)
        self._node = Node(
            *(self.group.name, self.group.self_id, tuple(self.group.members), self._log),
            term=saved.term,
            vote=saved.vote,
            commit_index=committed,
        )
        self._commit_index = committed
        self._store.gate.confirm(entries.end_position(committed))
        self._store.write_listeners.append(self._written)
        await self._transport.start()
        loop = asyncio.get_running_loop()
        self._timers = [loop.create_task(self._tick()), loop.create_task(self._checkpoint())]

    async def stop(self) -> None:
        """Close the port, and write the checkpoint."""
        if self._node is None:
            return
        tasks = [*self._timers, *self._tasks]
        for task in self._timers:
            task.cancel()
        await self._transport.close()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._written in self._store.write_listeners:
            self._store.write_listeners.remove(self._written)
        await self._save_checkpoint()

    @property
    def _term_path(self) -> Path:
        return self._folder / "currterm"

    @property
    def _checkpoint_path(self) -> Path:
        return self._folder / "checkpoint"

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
            "problem": self.problem,
        }

    # -- inputs --

    def _input(self, step: Callable[[], None]) -> None:
        """Take an input now, or after the effects of an earlier one."""
        if self._is_busy:
            if len(self._inputs) < INPUTS_MAX:
                self._inputs.append(step)
            return
        self._take(step)

    def _take(self, step: Callable[[], None]) -> None:
        if self._failure:
            return
        try:
            step()
            self._run(self._taken())
        except Exception as error:
            log.exception("This member leaves its DLedger group")
            self._fail(error)

    def _taken(self) -> list[Effect]:
        assert self._node is not None
        return self._node.take()

    def _fail(self, error: Exception) -> None:
        """Leave the group: a member that cannot keep its promises must not make more."""
        self._failure = f"{type(error).__name__}: {error}; start the broker again"
        self._set_standing(Standing(Role.CANDIDATE, self._standing.term, None))

    async def _tick(self) -> None:
        while True:
            self._input(self._ticked)
            await asyncio.sleep(TICK_S)

    def _ticked(self) -> None:
        assert self._node is not None
        self._hooks.flush()
        self._node.tick(monotonic_ms())

    def _written(self) -> None:
        """The broker has written messages."""
        if self._standing.role is Role.LEADER:
            self._input(self._appended)

    def _appended(self) -> None:
        assert self._node is not None
        self._node.appended(monotonic_ms())

    def _lost(self, leader: str) -> None:
        def step() -> None:
            assert self._node is not None
            patience_ms = PATIENCE_MS[0] + random.randrange(PATIENCE_MS[1])
            self._node.suspect(leader, patience_ms, monotonic_ms())

        self._input(step)

    def _requested(self, request: AnyRequest, token: Token) -> None:
        self._input(lambda: self._serve(request, token))

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
        else:
            answer = answer_to_client(self.group, self._standing, request)
            self._transport.answer(token, answer)

    # -- effects --

    def _run(self, effects: list[Effect]) -> None:
        for number, effect in enumerate(effects):
            if isinstance(effect, SaveTerm | Truncate):
                if self._node is not None and self._node.role is not Role.LEADER:
                    self._note()
                self._is_busy = True
                task = asyncio.get_running_loop().create_task(self._run_slowly(effects[number:]))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                return
            self._do(effect)
        self._note()

    async def _run_slowly(self, effects: list[Effect]) -> None:
        """Execute effects that wait, then the inputs that came meanwhile."""
        try:
            while effects:
                effect = effects.pop(0)
                if isinstance(effect, SaveTerm):
                    saved = TermAndVote(effect.term, effect.vote)
                    await asyncio.to_thread(save_term, self._term_path, saved)
                elif isinstance(effect, Truncate):
                    await self._truncate(effect)
                    effects += self._taken()
                else:
                    self._do(effect)
            self._note()
        except Exception as error:
            log.exception("This member leaves its DLedger group")
            self._fail(error)
            return
        self._is_busy = False
        while self._inputs and not self._is_busy:
            self._take(self._inputs.popleft())

    async def _truncate(self, effect: Truncate) -> None:
        entries, node = self._store.entries, self._node
        assert entries is not None
        assert node is not None
        refusal = None
        try:
            await self._hooks.truncate(entries.end_position(effect.keep))
        except GantryError as error:
            refusal = LogRefused(DLedgerCode.DISK_ERROR, str(error))
        self._confirm()  # the store begins with the confirm offset of its checkpoint
        node.truncated(refusal, monotonic_ms())

    def _do(self, effect: Effect) -> None:
        if isinstance(effect, Send):
            self._send(effect)
        elif isinstance(effect, Push):
            self._push(effect)
        elif isinstance(effect, Answer):
            self._transport.answer(effect.token, effect.response)  # type: ignore[arg-type]

    def _send(self, sent: Send) -> None:
        kind: type[Any] = VoteResponse if isinstance(sent.request, VoteRequest) else Response

        def answered(response: AnyResponse | None) -> None:
            def step() -> None:
                assert self._node is not None
                self._hooks.flush()
                self._node.answered(sent, response, monotonic_ms())

            self._input(step)

        self._transport.ask(sent.target, sent.request, kind, answered)

    def _push(self, push: Push) -> None:
        if push.kind is PushKind.COMMIT:
            self._send_push(push, [])
            return
        try:
            self._send_push(push, self._log.read(push.first, push.last))
        except EntriesGone as gone:
            log.info("member %s is behind: %s", push.target, gone)
            asyncio.get_running_loop().call_soon(self._input, lambda: self._pushed(push, None))
        except ColdRead as cold:
            self._store.cold_reads.warm(cold, lambda error: self._warmed(push, error))

    def _warmed(self, push: Push, error: Exception | None) -> None:
        def step() -> None:
            standing = self._standing
            if error is not None:
                log.warning("entry %d cannot be read: %s", push.first, error)
            elif (standing.role, standing.term) == (Role.LEADER, push.term):
                self._push(push)
                return
            self._pushed(push, None)

        self._input(step)

    def _send_push(self, push: Push, entries: list[Entry]) -> None:
        request = push_request(push.kind, entries, push.commit_index)
        request.group, request.term = self.group.name, push.term
        request.leader_id = request.local_id = self.group.self_id
        request.remote_id = push.target

        def answered(response: PushResponse | None) -> None:
            self._input(lambda: self._pushed(push, response))

        self._transport.ask(push.target, request, PushResponse, answered)

    def _pushed(self, push: Push, response: PushResponse | None) -> None:
        assert self._node is not None
        self._node.pushed(push, response, monotonic_ms())

    # -- results --

    def _note(self) -> None:
        """Tell the owner what changed."""
        node = self._node
        assert node is not None
        self._set_standing(Standing(node.role, node.term, node.leader_id))
        if node.commit_index > self._commit_index:
            self._commit_index = node.commit_index
            self._confirm()
            self._hooks.committed()

    def _confirm(self) -> None:
        entries = self._store.entries
        assert entries is not None
        self._store.gate.confirm(entries.end_position(self._commit_index))

    def _set_standing(self, standing: Standing) -> None:
        if standing != self._standing:
            self._standing = standing
            self._hooks.changed(standing)

    async def _checkpoint(self) -> None:
        while True:
            await asyncio.sleep(CHECKPOINT_S)
            await self._save_checkpoint()

    async def _save_checkpoint(self) -> None:
        entries = self._store.entries
        assert entries is not None
        try:
            await asyncio.to_thread(
                save_committed, self._checkpoint_path, entries.end_index, self._commit_index
            )
        except OSError as error:
            log.warning("the checkpoint of DLedger cannot be written: %s", error)

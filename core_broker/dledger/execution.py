"""Executes the effects of a member's node in order, on disk, store and sockets.

Effects that wait for the disk (term and vote) or stop the store (truncation) run in a task, and
hold the inputs meanwhile. Event loop only, except the writes of term and vote.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from core_broker.dledger.codes import DLedgerCode, PushKind
from core_broker.dledger.entry_store import EntryStore
from core_broker.dledger.inputs import Inputs
from core_broker.dledger.messages import (
    AnyResponse,
    Entry,
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
from core_broker.dledger.owner import Hooks
from core_broker.dledger.peers import Group
from core_broker.dledger.state_files import TermAndVote, save_term
from core_broker.dledger.transport import Transport
from core_broker.errors import GantryError
from core_broker.ha.master import monotonic_ms
from core_broker.store import ColdRead, MessageStore

log = logging.getLogger(__name__)


class Means(NamedTuple):
    """What effects need."""

    group: Group
    store: MessageStore
    log: EntryStore
    transport: Transport
    hooks: Hooks
    #: The file of term and vote.
    term_path: Path


class Execution:
    """Executes effects. `noted` hears of each finished run, `failed` of an error of a task."""

    def __init__(
        self,
        node: Node,
        means: Means,
        inputs: Inputs,
        noted: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._node = node
        self._means = means
        self._inputs = inputs
        self._noted = noted
        self._failed = failed
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Return when the effects that wait for the disk are executed."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def run(self) -> None:
        """Execute the effects of the node's last input, as far as none waits."""
        effects = self._node.take()
        for number, effect in enumerate(effects):
            if isinstance(effect, SaveTerm | Truncate):
                if self._node.role is not Role.LEADER:
                    self._noted()
                self._inputs.hold()
                task = asyncio.get_running_loop().create_task(self._run_slowly(effects[number:]))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                return
            self._do(effect)
        self._noted()

    async def _run_slowly(self, effects: list[Effect]) -> None:
        """Execute effects that wait, then let the inputs go on that came meanwhile."""
        try:
            while effects:
                effect = effects.pop(0)
                if isinstance(effect, SaveTerm):
                    saved = TermAndVote(effect.term, effect.vote, effect.is_new)
                    await asyncio.to_thread(save_term, self._means.term_path, saved)
                elif isinstance(effect, Truncate):
                    await self._truncate(effect)
                    effects += self._node.take()
                else:
                    self._do(effect)
            self._noted()
        except Exception as error:
            log.exception("This member leaves its DLedger group")
            self._failed(error)
            return
        self._inputs.resume()

    async def _truncate(self, effect: Truncate) -> None:
        entries = self._means.store.entries
        assert entries is not None
        refusal = None
        try:
            await self._means.hooks.truncate(entries.end_position(effect.keep))
        except GantryError as error:
            refusal = LogRefused(DLedgerCode.DISK_ERROR, str(error))
        # The store begins with the confirm offset of its checkpoint.
        self._means.store.gate.confirm(entries.end_position(self._node.commit_index))
        self._node.truncated(refusal, monotonic_ms())

    def _do(self, effect: Effect) -> None:
        if isinstance(effect, Send):
            self._send(effect)
        elif isinstance(effect, Push):
            self._push(effect)
        elif isinstance(effect, Answer):
            self._means.transport.answer(effect.token, effect.response)  # type: ignore[arg-type]

    def _send(self, sent: Send) -> None:
        kind: type[Any] = VoteResponse if isinstance(sent.request, VoteRequest) else Response

        def answered(response: AnyResponse | None) -> None:
            def step() -> None:
                self._means.hooks.flush()
                self._node.answered(sent, response, monotonic_ms())

            self._inputs.put_answer(step)

        self._means.transport.ask(sent.target, sent.request, kind, answered)

    # -- pushes --

    def _push(self, push: Push) -> None:
        if push.kind is PushKind.COMMIT:
            self._send_push(push, [])
            return
        try:
            self._send_push(push, self._means.log.read(push.first, push.last))
        except EntriesGone as gone:
            log.info("member %s is behind: %s", push.target, gone)
            asyncio.get_running_loop().call_soon(
                self._inputs.put_answer, lambda: self._pushed(push, None)
            )
        except ColdRead as cold:
            self._means.store.cold_reads.warm(cold, lambda error: self._warmed(push, error))

    def _warmed(self, push: Push, error: Exception | None) -> None:
        def step() -> None:
            node = self._node
            if error is not None:
                log.warning("entry %d cannot be read: %s", push.first, error)
            elif (node.role, node.term) == (Role.LEADER, push.term):
                self._push(push)
                return
            self._pushed(push, None)

        self._inputs.put_answer(step)

    def _send_push(self, push: Push, entries: list[Entry]) -> None:
        group = self._means.group
        request = push_request(push.kind, entries, push.commit_index)
        request.group, request.term = group.name, push.term
        request.leader_id = request.local_id = group.self_id
        request.remote_id = push.target

        def answered(response: PushResponse | None) -> None:
            self._inputs.put_answer(lambda: self._pushed(push, response))

        self._means.transport.ask(push.target, request, PushResponse, answered)

    def _pushed(self, push: Push, response: PushResponse | None) -> None:
        self._node.pushed(push, response, monotonic_ms())

"""A simulated DLedger group: nodes of core_broker/dledger/node.py on a network of a seed's making.

Messages are delayed, reordered, repeated and lost; members crash between any two effects and come
back; partitions come and go; disks are full for a while; operators transfer the leadership. After
each step the group is checked: at most one leader per term, committed entries equal everywhere and
for ever, every leader has all of them.
"""

import heapq
from collections.abc import Callable
from random import Random

from core_broker.dledger.checkpoint import vote_after_loss
from core_broker.dledger.codes import DLedgerCode, PushKind
from core_broker.dledger.messages import (
    AnyRequest,
    AnyResponse,
    Entry,
    HeartbeatRequest,
    PushRequest,
    PushResponse,
    TransferRequest,
    VoteRequest,
    decode,
    encode,
    push_request,
)
from core_broker.dledger.model import (
    Answer,
    Effect,
    LogRefused,
    Push,
    Role,
    SaveTerm,
    Send,
    Truncate,
)
from core_broker.dledger.node import Node
from core_broker.dledger.state_files import TermAndVote

HEADER = 48
TICK_MS = 50


class MemoryLog:
    """The log of a simulated member; it survives crashes, as files survive a killed process."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.is_full = False

    @property
    def begin_index(self) -> int:
        return self.entries[0].index if self.entries else -1

    @property
    def end_index(self) -> int:
        return self.entries[-1].index if self.entries else -1

    @property
    def end_term(self) -> int:
        return self.entries[-1].term if self.entries else -1

    @property
    def end_position(self) -> int:
        return self.entries[-1].pos + self.entries[-1].size if self.entries else 0

    def at(self, index: int) -> Entry:
        assert self.begin_index <= index <= self.end_index
        return self.entries[index - self.begin_index]

    def term_at(self, index: int) -> int:
        return self.at(index).term

    def matches(self, entry: Entry) -> bool:
        return self.at(entry.index) == entry

    def batch_end(self, first: int) -> int:
        return min(self.end_index, first + 3)

    def size_of(self, first: int, last: int) -> int:
        return self.at(last).pos + self.at(last).size - self.at(first).pos

    def append(self, entries: list[Entry]) -> None:
        if self.is_full:
            raise LogRefused(DLedgerCode.DISK_ERROR, "the disk is full")
        for entry in entries:
            assert not self.entries or entry.index == self.end_index + 1
            assert entry.pos == self.end_position
            self.entries.append(entry)

    def write(self, term: int, body: bytes) -> None:
        """Append an entry of a leader."""
        index, size = self.end_index + 1, HEADER + len(body)
        self.entries.append(
            Entry(body=body, index=index, pos=self.end_position, size=size, term=term)
        )

    def truncate(self, keep: int) -> None:
        del self.entries[keep - self.begin_index + 1 :]


class _Member:
    def __init__(self, name: str) -> None:
        self.name = name
        self.log = MemoryLog()
        self.saved = SaveTerm(0, None, is_new=True)
        self.saved_commit = -1
        #: The last entry that was checked as committed.
        self.checked = -1
        self.node: Node | None = None
        #: Lives since the start; answers of an earlier life are lost.
        self.life = 0


class SimulatedGroup:
    """A group under a seed."""

    def __init__(self, size: int, seed: int, preferred: tuple[str, ...] = ()) -> None:
        self.random = Random(seed)
        self.preferred = preferred
        self.now_ms = 0
        self.names = [f"n{number}" for number in range(size)]
        self.members = {name: _Member(name) for name in self.names}
        self.leaders: dict[int, str] = {}
        #: Committed entries by index, from any member that said so.
        self.committed: dict[int, Entry] = {}
        #: The term in which each of them was committed.
        self.committed_in: dict[int, int] = {}
        self.cut: set[tuple[str, str]] = set()
        self.loss = 0.0
        self.crash_share = 0.0
        self.delay_max_ms = 20
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = 0
        self._bodies = 0
        for name in self.names:
            self.start(name)

    # -- life --

    def start(self, name: str) -> None:
        """Start a member that is down."""
        member = self.members[name]
        assert member.node is None
        member.life += 1
        saved, last = member.saved, member.log.end_index
        kept = vote_after_loss(
            TermAndVote(saved.term, saved.vote, saved.is_new), member.saved_commit, last
        )
        member.saved = SaveTerm(*kept)
        member.saved_commit = min(member.saved_commit, last)
        member.node = Node(
            *("g", name, self.names, member.log),
            term=member.saved.term,
            vote=member.saved.vote,
            commit_index=member.saved_commit,
            is_new=member.saved.is_new,
            preferred=self.preferred,
            random=Random(self.random.random()),
        )
        self._later(self.random.randrange(TICK_MS), lambda: self._tick(name, member.life))

    def crash(self, name: str) -> None:
        """Kill a member; its files stay."""
        member = self.members[name]
        member.node = None
        if self.random.random() < 0.5:
            self._later(self.random.randrange(8_000), lambda: self._restart(name))
        else:
            self._later(self.random.randrange(300), lambda: self._restart(name))

    def stop(self, name: str) -> None:
        """Kill a member until `start`."""
        self.members[name].node = None

    def wipe(self, name: str) -> None:
        """Replace the disk of a member that is down by an empty one."""
        assert self.members[name].node is None
        self.members[name] = _Member(name)

    def lose(self, name: str, after: int) -> None:
        """Take the entries behind one from a member that is down and wrote all its checkpoint."""
        member = self.members[name]
        assert member.node is None
        member.saved_commit = member.checked
        del member.log.entries[after + 1 :]
        member.checked = min(member.checked, after)

    def _restart(self, name: str) -> None:
        if self.members[name].node is None:
            self.start(name)

    # -- time --

    def run(
        self, duration_ms: int, each_ms: int = 0, act: Callable[[], None] | None = None
    ) -> None:
        """Let time pass; `act` runs each `each_ms`."""
        end_ms, next_ms = self.now_ms + duration_ms, self.now_ms + each_ms
        while self._events and self._events[0][0] <= end_ms:
            if act is not None and self._events[0][0] >= next_ms:
                self.now_ms, next_ms = max(self.now_ms, next_ms), next_ms + each_ms
                act()
                continue
            self.now_ms, _, step = heapq.heappop(self._events)
            step()
        self.now_ms = end_ms

    def _later(self, delay_ms: int, step: Callable[[], None]) -> None:
        self._numbers += 1
        heapq.heappush(self._events, (self.now_ms + delay_ms, self._numbers, step))

    def _tick(self, name: str, life: int) -> None:
        member = self.members[name]
        if member.node is None or member.life != life:
            return
        member.node.set_writable(not member.log.is_full)
        member.node.tick(self.now_ms)
        self._execute(member)
        self._later(TICK_MS, lambda: self._tick(name, life))

    # -- clients --

    def write(self, least: int = 0) -> None:
        """Let every member that believes to lead append entries."""
        for member in self.members.values():
            node = member.node
            if node is not None and node.role is Role.LEADER and node.transferee is None:
                if member.log.is_full:
                    continue
                for _ in range(self.random.randrange(least, least + 4)):
                    self._bodies += 1
                    member.log.write(node.term, f"{member.name}-{self._bodies}".encode())
                node.appended(self.now_ms)
                self._execute(member)

    def leader(self) -> str | None:
        """The member that leads, as far as the other members say; None without a majority."""
        found = [member.node.leader_id for member in self.members.values() if member.node]
        leader = max(set(found), key=found.count)
        is_one = leader is not None and found.count(leader) > len(self.names) // 2
        return leader if is_one else None

    def transfer(self, target: str) -> list[AnyResponse]:
        """Ask the leaders to hand over to a member; the list gets the answers."""
        answers: list[AnyResponse] = []
        for name, member in self.members.items():
            if member.node is not None and member.node.role is Role.LEADER:
                request = TransferRequest(
                    group="g",
                    remote_id=name,
                    term=member.node.term,
                    transfer_id=name,
                    transferee_id=target,
                )
                member.node.transfer_requested(request, answers.append, self.now_ms)
                self._execute(member)
        return answers

    # -- effects --

    def _execute(self, member: _Member) -> None:
        node = member.node
        assert node is not None
        effects = node.take()
        while effects:
            effect = effects.pop(0)
            if self.crash_share and self.random.random() < self.crash_share:
                self.crash(member.name)
                return
            if isinstance(effect, Truncate):
                member.log.truncate(effect.keep)
                node.truncated(None, self.now_ms)
                effects += node.take()
            else:
                self._one(member, effect)
        self._check(member)

    def _one(self, member: _Member, effect: Effect) -> None:
        if isinstance(effect, SaveTerm):
            member.saved = effect
        elif isinstance(effect, Send):
            self._request(member, effect.target, effect.request, effect)
        elif isinstance(effect, Push):
            indexes = range(effect.first, effect.last + 1)
            if effect.kind is PushKind.COMMIT:
                indexes = range(0)
            entries = [member.log.at(index) for index in indexes]
            request = push_request(effect.kind, entries, effect.commit_index)
            request.group, request.term = "g", effect.term
            request.leader_id = request.local_id = member.name
            request.remote_id = effect.target
            self._request(member, effect.target, request, effect)
        elif isinstance(effect, Answer):
            reply = effect.token
            assert callable(reply)
            reply(effect.response)

    def _request(
        self, source: _Member, target: str, request: AnyRequest, effect: Send | Push
    ) -> None:
        data, life, is_answered = encode(request), source.life, [False]

        def hear(response: AnyResponse | None) -> None:
            node = source.node
            if node is None or source.life != life or is_answered[0]:
                return
            is_answered[0] = True
            if isinstance(effect, Push):
                assert response is None or isinstance(response, PushResponse)
                node.pushed(effect, response, self.now_ms)
            else:
                node.answered(effect, response, self.now_ms)
            self._execute(source)

        def reply(response: AnyResponse) -> None:
            answer = decode(type(response), encode(response))
            self._deliver(target, source.name, lambda: hear(answer))

        def arrive() -> None:
            receiver = self.members[target]
            if receiver.node is None:
                return
            if isinstance(request, VoteRequest):
                receiver.node.vote_requested(decode(VoteRequest, data), reply, self.now_ms)
            elif isinstance(request, HeartbeatRequest):
                beat = decode(HeartbeatRequest, data)
                receiver.node.heartbeat_requested(beat, reply, self.now_ms)
            elif isinstance(request, TransferRequest):
                transfer = decode(TransferRequest, data)
                receiver.node.transfer_requested(transfer, reply, self.now_ms)
            else:
                push = decode(PushRequest, data)
                receiver.node.push_requested(push, reply, self.now_ms)
            self._execute(receiver)

        for _ in range(2 if self.random.random() < 0.05 else 1):
            self._deliver(source.name, target, arrive)
        self._later(3_000, lambda: hear(None))

    def _deliver(self, source: str, target: str, step: Callable[[], None]) -> None:
        if (source, target) in self.cut or self.random.random() < self.loss:
            return
        delay_ms = 1 + self.random.randrange(self.delay_max_ms)
        if self.random.random() < 0.02:
            delay_ms += self.random.randrange(5_000)
        self._later(delay_ms, step)

    # -- checks --

    def _check(self, member: _Member) -> None:
        node = member.node
        if node is None:
            return
        if node.role is Role.LEADER and self.leaders.get(node.term) != member.name:
            known = self.leaders.setdefault(node.term, member.name)
            assert known == member.name, f"term {node.term} has the leaders {known}, {member.name}"
            for index, entry in self.committed.items():
                if index > member.log.end_index or member.log.at(index) != entry:
                    is_later = self.committed_in[index] > node.term
                    assert is_later, f"the leader of term {node.term} lacks entry {index}"
        if self.random.random() < 0.1:
            member.saved_commit = node.commit_index
        for index in range(member.checked + 1, node.commit_index + 1):
            entry = member.log.at(index)
            assert self.committed.setdefault(index, entry) == entry, f"entry {index} changed"
            self.committed_in.setdefault(index, node.term)
        member.checked = max(member.checked, node.commit_index)

    def check_converged(self) -> None:
        """Check that all members have the same committed log."""
        assert all(member.node is not None for member in self.members.values())
        leaders = [m for m in self.members.values() if m.node and m.node.role is Role.LEADER]
        assert len(leaders) == 1, "no leader, or several"
        entries = leaders[0].log.entries
        for member in self.members.values():
            assert member.log.entries == entries, f"{member.name} differs from {leaders[0].name}"
            assert member.node is not None
            assert member.node.problem == ""
            assert member.node.commit_index == leaders[0].log.end_index

"""Runs scenario files: commands to a group of Raft nodes, and the expected log below each.

    # a comment
    command arguments
    ----
    expected lines

A blank line ends the expected lines. With `GANTRY_REWRITE=1` the files are rewritten; review the
difference. Commands, where N and M are node ids:

    group N… [learners N…]     create and start nodes with this membership
    set NAME VALUE             a field of RaftConfig, before `group`
    join N                     create and start a node without a membership
    tick N COUNT               let ticks pass on a node
    timeout N                  tick a node that just heard its leader up to its election
    campaign N                 start an election now
    propose N KEY=VALUE…       propose commands
    add N voter|learner M      propose a membership change at node N
    remove N M                 propose a removal at node N
    transfer N M               hand the leadership from N to M
    read N CONTEXT             ask for a linearizable read
    ready N                    execute the effects of one node
    deliver [N…]               execute effects and deliver messages (to these nodes) until quiet
    pass N M                   deliver the oldest message from N to M, execute M's effects
    cut N M · heal             drop messages from N to M · restore all links
    isolate N                  drop messages from and to N
    drop                       drop all messages in flight
    crash N · powercut N · restart N
    snapshot N [KEEP]          take a snapshot and compact the log
    status · log N             print state
"""

import random
from collections.abc import Iterator
from pathlib import Path

import msgspec

from core_broker.raft.config import RaftConfig
from core_broker.raft.membership import ChangeKind
from core_broker.raft.messages import AppendRequest, AppendResponse, Message, SnapshotChunk
from core_broker.raft.model import Entry, EntryKind, Membership
from core_broker.raft.refusals import RaftRefused
from core_broker.store.simulated_files import SimulatedFiles
from tests.support.raft_hosts import Command, Host, travelled

#: Deliveries of one command; more means that the nodes never become quiet.
DELIVERIES_MAX = 5_000
SEGMENT_BYTES = 400


class Staggered(random.Random):
    """Draws election timeouts that grow with the node's id, so that node 1 is first."""

    def __init__(self, node_id: int) -> None:
        super().__init__(0)
        self._node_id = node_id

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """Return the ticks above the shortest timeout."""
        return self._node_id - 1


class Scenario:
    """The nodes of one file."""

    def __init__(self) -> None:
        self.hosts: dict[int, Host] = {}
        self.in_flight: list[Message] = []
        self.cuts: set[tuple[int, int]] = set()
        self.settings: dict[str, int | bool] = {}
        self.lines: list[str] = []
        self._next_id = 0

    def run(self, line: str) -> list[str]:
        """Execute one command; return the log."""
        self.lines = []
        name, *words = line.split()
        try:
            getattr(self, f"do_{name}")(*words)
        except RaftRefused as refusal:
            self.lines.append(f"refused: {refusal}")
        return self.lines or ["ok"]

    # -- commands --

    def do_set(self, name: str, value: str) -> None:
        self.settings[name] = msgspec.json.decode(value.encode())

    def do_group(self, *words: str) -> None:
        split = words.index("learners") if "learners" in words else len(words)
        membership = Membership(tuple(map(int, words[:split])), tuple(map(int, words[split + 1 :])))
        for node_id in membership.members:
            self._create(node_id, membership)

    def do_join(self, node: str) -> None:
        self._create(int(node), Membership())

    def do_tick(self, node: str, count: str) -> None:
        for _ in range(int(count)):
            self._node(node).tick()

    def do_timeout(self, node: str) -> None:
        self.do_tick(node, str(self.hosts[int(node)].config.election_ticks + int(node) - 1))

    def do_campaign(self, node: str) -> None:
        self._node(node).campaign()

    def do_propose(self, node: str, *words: str) -> None:
        for word in words:
            key, _, value = word.partition("=")
            self._next_id += 1
            command = Command(self._next_id, key, value)
            receipt = self._node(node).propose(msgspec.json.encode(command))
            self.lines.append(f"{node}: accepted as {receipt.index}/{receipt.term}")

    def do_add(self, node: str, kind: str, added: str) -> None:
        change = ChangeKind.ADD_VOTER if kind == "voter" else ChangeKind.ADD_LEARNER
        receipt = self._node(node).change_membership(change, int(added))
        self.lines.append(f"{node}: accepted as {receipt.index}/{receipt.term}")

    def do_remove(self, node: str, removed: str) -> None:
        receipt = self._node(node).change_membership(ChangeKind.REMOVE, int(removed))
        self.lines.append(f"{node}: accepted as {receipt.index}/{receipt.term}")

    def do_transfer(self, node: str, target: str) -> None:
        self._node(node).transfer_leadership(int(target))

    def do_read(self, node: str, context: str) -> None:
        self._node(node).read(int(context))

    def do_ready(self, node: str) -> None:
        self._effects(self.hosts[int(node)])

    def do_deliver(self, *nodes: str) -> None:
        targets = {int(each) for each in nodes} or set(self.hosts)
        for _ in range(DELIVERIES_MAX):
            is_busy = sum(self._effects(host) for host in self.hosts.values()) > 0
            message = next((each for each in self.in_flight if each.target in targets), None)
            if message is None:
                if not is_busy:
                    return
                continue
            self.in_flight.remove(message)
            self._deliver(message)
        raise AssertionError(f"not quiet after {DELIVERIES_MAX} deliveries")

    def do_pass(self, source: str, target: str) -> None:
        ends = (int(source), int(target))
        message = next(each for each in self.in_flight if (each.source, each.target) == ends)
        self.in_flight.remove(message)
        self._deliver(message)
        self._effects(self.hosts[message.target])

    def do_cut(self, source: str, target: str) -> None:
        self.cuts.add((int(source), int(target)))

    def do_isolate(self, node: str) -> None:
        for other in self.hosts:
            self.cuts |= {(int(node), other), (other, int(node))}

    def do_heal(self) -> None:
        self.cuts.clear()

    def do_drop(self) -> None:
        self.lines += [f"drop {described(each)}" for each in self.in_flight]
        self.in_flight.clear()

    def do_crash(self, node: str) -> None:
        self.hosts[int(node)].crash(is_power_cut=False)

    def do_powercut(self, node: str) -> None:
        self.hosts[int(node)].crash(is_power_cut=True)

    def do_restart(self, node: str) -> None:
        self.hosts[int(node)].start(Staggered(int(node)))

    def do_snapshot(self, node: str, keep: str = "0") -> None:
        snapshot = self.hosts[int(node)].take_snapshot(int(keep))
        assert snapshot is not None
        members = snapshot.membership.members
        self.lines.append(f"{node}: snapshot {snapshot.index}/{snapshot.term} of {members}")

    def do_status(self) -> None:
        for node_id, host in self.hosts.items():
            if host.node is None:
                self.lines.append(f"{node_id}: down")
                continue
            status, node = host.node.status, host.node
            self.lines.append(
                f"{node_id}: {status.role.value} term {status.term} leader {status.leader_id}"
                f" last {node.last_index} committed {node.committed_index}"
                f" members {list(node.membership.voters)}+{list(node.membership.learners)}"
                f" values {host.machine.values}"
            )

    def do_log(self, node: str) -> None:
        storage = self.hosts[int(node)].storage
        assert storage is not None
        self.lines.append(f"snapshot {storage.snapshot.index}/{storage.snapshot.term}")
        for entry in storage.entries(storage.first_index, storage.last_index + 1, 1 << 30):
            self.lines.append(short(entry))

    # -- steps --

    def _create(self, node_id: int, membership: Membership) -> None:
        config = RaftConfig(node_id, **self.settings)
        host = self.hosts[node_id] = Host(config, SimulatedFiles(node_id), SEGMENT_BYTES)
        host.initialise(membership)
        host.start(Staggered(node_id))

    def _node(self, node: str):
        host = self.hosts[int(node)]
        assert host.node is not None, f"node {node} is down"
        return host.node

    def _effects(self, host: Host) -> bool:
        """Execute one Ready of a node and log it in the order of execution."""
        if host.node is None:
            return False
        self._send(host.take())
        ready = host.ready
        if ready is None:
            return False
        if ready.status is not None:
            status = ready.status
            leader = f", leader {status.leader_id}" if status.leader_id is not None else ""
            self.lines.append(f"{host.id}: {status.role.value} of term {status.term}{leader}")
        if ready.hard_state is not None:
            state = ready.hard_state
            self.lines.append(f"{host.id}: persist term {state.term} vote {state.vote}")
        for chunk in ready.chunks:
            end = chunk.offset + len(chunk.data)
            self.lines.append(f"{host.id}: persist snapshot bytes {chunk.offset}-{end}")
        if ready.snapshot is not None:
            snapshot = ready.snapshot
            self.lines.append(f"{host.id}: install snapshot {snapshot.index}/{snapshot.term}")
        if ready.entries:
            self.lines.append(f"{host.id}: persist {listed(ready.entries)}")
        after = host.finish()
        self._send(after)
        if ready.committed:
            self.lines.append(f"{host.id}: apply {listed(ready.committed)}")
        for context, index in ready.reads:
            self.lines.append(f"{host.id}: read {context} at {index}")
        self.lines += [f"{host.id}: read {context} refused" for context in ready.refused_reads]
        return True

    def _send(self, messages: tuple[Message, ...]) -> None:
        for message in messages:
            if (message.source, message.target) in self.cuts or message.target not in self.hosts:
                self.lines.append(f"lost {described(message)}")
            else:
                self.in_flight.append(message)

    def _deliver(self, message: Message) -> None:
        host = self.hosts[message.target]
        self.lines.append(described(message))
        if host.node is not None:
            host.node.receive(travelled(message))


def short(entry: Entry) -> str:
    """Return an entry in a few characters."""
    if entry.kind is EntryKind.NOOP:
        content = "noop"
    elif entry.kind is EntryKind.MEMBERSHIP:
        membership = Membership.decode(entry.data)
        content = f"members {list(membership.voters)}+{list(membership.learners)}"
    else:
        command = msgspec.json.decode(entry.data, type=Command)
        content = f"{command.key}={command.value}"
    return f"{entry.index}/{entry.term} {content}"


def listed(entries: tuple[Entry, ...]) -> str:
    """Return several entries in one line."""
    return ", ".join(map(short, entries))


def described(message: Message) -> str:
    """Return a message in one line."""
    head = f"{message.source}>{message.target} {type(message).__name__} term {message.term}"
    if isinstance(message, AppendRequest):
        entries = f" [{listed(message.entries)}]" if message.entries else ""
        prev = f"{message.prev_index}/{message.prev_term}"
        return f"{head} prev {prev} commit {message.commit}{entries}"
    if isinstance(message, SnapshotChunk):
        snapshot = f"{message.snapshot.index}/{message.snapshot.term}"
        end = message.offset + len(message.data)
        return f"{head} snapshot {snapshot} bytes {message.offset}-{end} of {message.snapshot.size}"
    is_accepted = isinstance(message, AppendResponse) and not message.is_rejected
    rest = {
        name.removeprefix("is_"): value
        for name, value in msgspec.structs.asdict(message).items()
        if name not in ("source", "target", "term")
        and value is not False
        and not (is_accepted and name.startswith("hint"))
    }
    details = "".join(
        f" {name}" if value is True else f" {name} {value}" for name, value in rest.items()
    )
    return head + details


def replayed(path: Path) -> str:
    """Run a file; return its text with the real logs."""
    scenario = Scenario()
    return "".join(_output(scenario, path.read_text(encoding="utf-8")))


def _output(scenario: Scenario, text: str) -> Iterator[str]:
    is_expected = False
    for line in text.splitlines():
        if is_expected:
            is_expected = line != ""
            continue
        if line == "----":
            is_expected = True
        elif line == "" or line.startswith("#"):
            yield f"{line}\n"
        else:
            output = "\n".join(scenario.run(line))
            yield f"{line}\n----\n{output}\n\n"

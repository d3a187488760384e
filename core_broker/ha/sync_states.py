"""The sync-state set of a master: the replicas that have every acknowledged message. Pure.

    joining --has all confirmed bytes--> ready --report--> member --lost or slow--> leaving

Only a member may be elected, so a message is confirmed when every broker has it that is a member at
the controllers, or may become one by a report whose outcome is unknown. A broker that joins counts
from before the report on; a broker that leaves counts until the controllers have accepted the
smaller set. Compatible with RocketMQ's AutoSwitchHAService, which however admits a slave only when
it happens to have the whole log: under load a slave of a lone master would never join.
"""

from collections.abc import Mapping

#: Time after which a report without an answer can no longer be accepted, ms: a controller gives a
#: request up after seconds. Whether it was accepted before that time, only the controllers know.
UNKNOWN_MS = 30_000


class SyncStates:
    """The set of one master in one epoch; `own_id` is always a member."""

    def __init__(self, own_id: int, epoch: int, members: frozenset[int]) -> None:
        self.own_id = own_id
        #: syncStateSetEpoch: the number of the set at the controllers.
        self.epoch = epoch
        #: The set at the controllers.
        self.members = members | {own_id}
        #: Brokers that count, but may lack confirmed messages; each with the end that it needs.
        self.joining: dict[int, int] = {}
        self._ready: set[int] = set()
        self._leaving: set[int] = set()
        #: The set of the report that is under way; None without one.
        self._report: frozenset[int] | None = None
        #: Members of reports whose outcome is unknown, and when they stop to count.
        self._unknown: frozenset[int] = frozenset()
        self._unknown_until_ms = 0

    @property
    def counted(self) -> frozenset[int]:
        """The brokers whose acknowledgements a message needs."""
        reported = self._unknown if self._report is None else self._unknown | self._report
        return self.members | self.joining.keys() | self._ready | reported

    @property
    def wanted(self) -> frozenset[int]:
        """The set that the controllers should have."""
        return (self.members | self._ready) - (self._leaving - {self.own_id})

    @property
    def size(self) -> int:
        """Number of members, during a change the larger one."""
        return max(len(self.members), len(self.wanted))

    @property
    def is_alone(self) -> bool:
        """True while the master's own copy is enough."""
        return len(self.counted) == 1

    def confirmed(self, acknowledged: Mapping[int, int], end: int, before: int) -> int:
        """Return the end of the bytes that all counted brokers have.

        `acknowledged` has the brokers with a connection. Without one of the counted brokers the
        offset stays `before`.
        """
        lowest = end
        for broker_id in self.counted - {self.own_id}:
            offset = acknowledged.get(broker_id)
            if offset is None:
                return before
            lowest = min(lowest, offset)
        return max(lowest, before)

    # -- events of connections --

    def begin_join(self, broker_id: int, needed: int) -> None:
        """Let a broker count from now on; all bytes before `needed` are confirmed."""
        self.joining[broker_id] = needed

    def drop_join(self, broker_id: int) -> None:
        """Let a broker that is no member not count any more, unless a report may have named it."""
        self.joining.pop(broker_id, None)
        self._ready.discard(broker_id)

    def acknowledged(self, broker_id: int, offset: int) -> None:
        """A joining broker with all confirmed bytes is ready."""
        needed = self.joining.get(broker_id)
        if needed is not None and offset >= needed:
            del self.joining[broker_id]
            self._ready.add(broker_id)

    def leave(self, broker_id: int) -> None:
        """A broker is lost, or too far behind."""
        self.drop_join(broker_id)
        if broker_id in self.members and broker_id != self.own_id:
            self._leaving.add(broker_id)

    def stay(self, broker_id: int) -> None:
        """A leaving member is back before the report, with the whole log."""
        self._leaving.discard(broker_id)

    def is_leaving(self, broker_id: int) -> bool:
        """Whether a member shall leave."""
        return broker_id in self._leaving

    # -- reports --

    @property
    def must_report(self) -> bool:
        """Whether the controllers should hear of another set."""
        return self._report is None and self.wanted != self.members

    def begin_report(self) -> frozenset[int]:
        """Return the set to report; `adopt`, `refused` or `unknown` must follow."""
        self._report = self.wanted
        return self._report

    def adopt(self, epoch: int, members: frozenset[int]) -> bool:
        """Take a set of the controllers; False when it is not newer."""
        if epoch <= self.epoch:
            return False
        self.epoch, self.members = epoch, members | {self.own_id}
        # A report about an older set can no longer be accepted.
        self._report, self._unknown = None, frozenset()
        self._ready -= members
        self._leaving &= members
        for broker_id in members:
            self.joining.pop(broker_id, None)
        return True

    def refused(self) -> None:
        """The controllers did not take the report: brokers that wanted to join may try again."""
        self._report = None
        self._ready.clear()

    def unknown(self, now_ms: int) -> None:
        """The outcome of the report is unknown: its members count until the set changes."""
        if self._report is not None:
            self._unknown |= self._report
            self._unknown_until_ms = now_ms + UNKNOWN_MS
            self._report = None

    def settle(self, epoch: int, asked_ms: int) -> bool:
        """Take the answer of the controllers, asked at a time, that they have the set of an epoch.

        Returns whether unanswered reports count no more: none was accepted, and none will be.
        """
        is_over = asked_ms >= self._unknown_until_ms and epoch == self.epoch
        if not self._unknown or not is_over:
            return False
        self._unknown = frozenset()
        return True

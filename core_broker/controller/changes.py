"""Changes of broker sets through the controllers' log, and elections when a master is lost.

Commands that name a version of their set are made again when another command came first.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable

from core_broker.config.controller_keys import ControllerKeys
from core_broker.controller.commands import (
    AlterSyncStateSet,
    AnyCommand,
    ApplyBrokerId,
    CleanBrokerData,
    ElectMaster,
    UpdateBrokerAddress,
    encode_command,
)
from core_broker.controller.live_brokers import LiveBroker, LiveBrokers
from core_broker.controller.machine import ReplicasInfo
from core_broker.controller.model import BrokerSet, Outcome
from core_broker.controller.role_changes import RoleChanges
from core_broker.raft.machine import NotLeader, ProposalsFull, ProposalUncertain, ReplicatedLog
from core_broker.remoting.codes import ResponseCode as Code

#: Attempts to make a command for the present version of its set.
ATTEMPTS_MAX = 5
#: Pause before an election is tried again, seconds.
RETRY_PAUSE_S = 0.2

log = logging.getLogger(__name__)


class Changes:
    """Proposes commands. All methods raise NotLeader, ProposalsFull and ProposalUncertain."""

    def __init__(
        self,
        replicas: ReplicasInfo,
        replicated: ReplicatedLog,
        live: LiveBrokers,
        role_changes: RoleChanges,
        settings: Callable[[], ControllerKeys],
        clock_ms: Callable[[], int],
    ) -> None:
        self._replicas = replicas
        self._log = replicated
        self._live = live
        self._role_changes = role_changes
        self._settings = settings
        self._clock_ms = clock_ms
        self._electing: dict[str, asyncio.Task[None]] = {}
        self._is_closed = False
        #: Finished elections by the name of their code.
        self.elections: Counter[str] = Counter()
        #: Elections that replaced a master by another broker.
        self.failovers = 0

    async def apply_broker_id(self, command: ApplyBrokerId) -> Outcome:
        """Assign a broker id."""
        return await self._propose(command)

    async def update_address(self, name: str, broker_id: int, address: str) -> Outcome:
        """Record the address of a registered broker."""
        return await self._at_present_version(
            name,
            lambda found: UpdateBrokerAddress(name, broker_id, address, _version(found)),
        )

    async def alter(
        self, name: str, master_id: int, master_epoch: int, members: tuple[int, ...], epoch: int
    ) -> Outcome:
        """Set the sync-state set that a master reports."""
        found = self._replicas.get(name)
        alive = self._alive_ids(found)
        return await self._propose(
            AlterSyncStateSet(name, master_id, master_epoch, members, epoch, alive)
        )

    async def elect(self, name: str, broker_id: int | None, *, is_designated: bool) -> Outcome:
        """Elect a master, and tell the brokers about a new one."""

        def command(found: BrokerSet | None) -> ElectMaster:
            candidates = () if found is None else self._live.candidates(found, self._clock_ms())
            return ElectMaster(
                name,
                broker_id,
                is_designated,
                candidates,
                self._settings().enable_elect_unclean_master,
                _version(found),
            )

        before = self._replicas.get(name)
        old_id = None if before is None else before.master_id
        outcome = await self._at_present_version(name, command)
        self.elections[Code(outcome.code).name] += 1
        elected = outcome.broker_set
        if outcome.code == Code.SUCCESS and elected is not None:
            log.warning(
                "%s has the master %s (%s) in epoch %d",
                *(name, elected.master_id, elected.master_address, elected.master_epoch),
            )
            self.failovers += old_id not in (None, elected.master_id)
            if self._settings().notify_broker_role_changed:
                self._role_changes.tell(elected, self._alive_ids(elected))
        return outcome

    async def clean(self, name: str, ids: tuple[int, ...], *, cleans_living: bool) -> Outcome:
        """Remove brokers of a set, without ids all."""
        return await self._at_present_version(
            name,
            lambda found: CleanBrokerData(
                name, ids, cleans_living, self._alive_ids(found), _version(found)
            ),
        )

    # -- lost masters --

    def brokers_lost(self, lost: list[LiveBroker]) -> None:
        """Elect masters in the background for the sets whose master is lost."""
        for broker in lost:
            log.warning("broker %s of %s is lost", broker.broker_id, broker.name)
            found = self._replicas.get(broker.name)
            if found is not None and found.master_id == broker.broker_id:
                self._begin_election(broker.name)

    def elect_missing(self) -> None:
        """Elect masters in the background for all sets without a living one."""
        now_ms = self._clock_ms()
        for found in self._replicas:
            if found.master_id is not None:
                is_due = not self._live.is_alive(found, found.master_id, now_ms)
            else:
                is_due = any(
                    self._live.is_alive(found, member, now_ms) for member in found.sync_state_set
                )
            if is_due:
                self._begin_election(found.name)

    async def close(self) -> None:
        """Cancel the elections in the background, and begin no more: brokers are lost now."""
        self._is_closed = True
        tasks = list(self._electing.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin_election(self, name: str) -> None:
        """Begin an election, unless no broker of the set lives: then the master stays.

        When this controller alone lost its connections, the set goes on in its epoch afterwards.
        """
        if self._is_closed or not self._log.is_leader or name in self._electing:
            return
        if self._alive_ids(self._replicas.get(name)):
            task = asyncio.get_running_loop().create_task(self._replace_master(name))
            self._electing[name] = task
            task.add_done_callback(lambda _: self._electing.pop(name, None))

    async def _replace_master(self, name: str) -> None:
        for _ in range(self._settings().elect_master_max_retry_count):
            try:
                outcome = await self.elect(name, None, is_designated=False)
            except NotLeader:
                return
            except (ProposalsFull, ProposalUncertain) as error:
                log.warning("no master was elected for %s: %s", name, error)
                await asyncio.sleep(RETRY_PAUSE_S)
            else:
                if outcome.code == Code.CONTROLLER_MASTER_NOT_AVAILABLE:
                    log.error("%s has no master, and no living broker may become master", name)
                return

    # -- proposing --

    def _alive_ids(self, found: BrokerSet | None) -> tuple[int, ...]:
        if found is None:
            return ()
        now_ms = self._clock_ms()
        return tuple(one for one in found.replicas if self._live.is_alive(found, one, now_ms))

    async def _at_present_version(
        self, name: str, command: Callable[[BrokerSet | None], AnyCommand]
    ) -> Outcome:
        for _ in range(ATTEMPTS_MAX):
            outcome = await self._propose(command(self._replicas.get(name)))
            if not outcome.is_stale:
                return outcome
        raise ProposalsFull(f"Broker set {name} changes too fast; try again.")

    async def _propose(self, command: AnyCommand) -> Outcome:
        outcome: Outcome = await self._log.propose(encode_command(command))
        return outcome


def _version(found: BrokerSet | None) -> int:
    return 0 if found is None else found.version

"""A broker under controllers: takes an id, registers, and follows what they decide.

    find the leader · id (1012, 1013) · register (1003) · who is master? (1004) · ask for one (1002)
    then: role changes as told (1004 each syncBrokerMetadataPeriod, at once after a notice 1008),
    heartbeats to all controllers (904), and as master reports of the sync-state set (1001)

Compatible with RocketMQ 5.3.3's ReplicasManager, which however believes a notice; everybody who
reaches a broker can send one.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from core_broker.broker.broker_identity import Application, BrokerIdentity
from core_broker.broker.controllers import Controllers
from core_broker.broker.role_changes import Mastership, RoleChanges
from core_broker.broker.sync_state_reports import SyncStateReports
from core_broker.errors import GantryError, RequestRefused
from core_broker.ha.master import monotonic_ms
from core_broker.ha.switch_replication import SwitchReplication
from core_broker.monitoring.metrics import Family
from core_broker.processors.context import BrokerContext
from core_broker.remoting.bodies import decode_body
from core_broker.remoting.bodies.replicas import SyncStateSet
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.ext_fields import Header
from core_broker.remoting.headers.controller import (
    ApplyBrokerIdRequestHeader,
    BrokerHeartbeatRequestHeader,
    ElectMasterRequestHeader,
    GetNextBrokerIdRequestHeader,
    GetNextBrokerIdResponseHeader,
    GetReplicaInfoRequestHeader,
    GetReplicaInfoResponseHeader,
    RegisterBrokerToControllerRequestHeader,
)

#: Names of the roles.
FENCED, SLAVE, MASTER = ROLES = ("fenced", "slave", "master")
#: Pause after a failed request, seconds.
RETRY_S = 0.5
#: Least time between two questions for the master, seconds: notices may come all the time.
ASK_PAUSE_S = 0.05
#: Epochs in /varz.
EPOCHS_SHOWN_MAX = 10
#: Pause before the next question for a master that the controllers do not have, seconds.
NO_MASTER_S = 1.0

log = logging.getLogger(__name__)


class ReplicaManager:
    """The tasks that speak with the controllers."""

    def __init__(
        self,
        ctx: BrokerContext,
        controllers: Controllers,
        identity: BrokerIdentity,
        roles: RoleChanges,
        replication: SwitchReplication,
    ) -> None:
        #: The reason why the broker has no role yet; "" in a role.
        self.problem = "no controller has answered"
        #: Id at the controllers; 0 before.
        self.broker_id = 0
        self.roles = roles
        self._replication = replication
        self._ctx = ctx
        self._controllers = controllers
        self._identity = identity
        self._wake = asyncio.Event()
        self._reports = SyncStateReports(ctx, controllers, roles, replication, self._wake.set)
        self._tasks: list[asyncio.Task[None]] = []
        # A notice (1008) is no proof of anything: the answer of the controllers is.
        ctx.role_notice = self._wake.set

    def start(self) -> None:
        """Begin; the broker is fenced, and its port is open."""
        for work in (self._run, self._beat, self._watch_leader, self._reports.run):
            self._tasks.append(asyncio.get_running_loop().create_task(_repeated(work)))

    async def stop(self) -> None:
        """End the tasks and the role, and disconnect from the controllers."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.roles.stop()
        await self._controllers.close()

    def varz(self) -> dict[str, Any]:
        """Return role, master and sync-state set for /varz."""
        current, states = self.roles.current, self._replication.states
        role = FENCED if current is None else SLAVE if states is None else MASTER
        epochs = self._ctx.store.epochs.cache.entries(self._ctx.store.max_offset_physical)
        return {
            "role": role,
            "problem": self.problem,
            "broker_id": self.broker_id,
            "master_addr": "" if current is None else current.master_addr,
            "epoch": -1 if current is None else current.epoch,
            "sync_state_set": [] if states is None else sorted(states.members),
            "sync_state_set_epoch": 0 if states is None else states.epoch,
            "confirm_offset": self._ctx.store.gate.confirmed,
            "epochs": [entry._asdict() for entry in epochs[-EPOCHS_SHOWN_MAX:]],
            "role_changes": self.roles.changes,
            "controller": self._controllers.leader,
        }

    def families(self) -> Iterator[Family]:
        """Yield the metrics of the role; those of the sync-state set only on the master."""
        found = self.varz()
        yield Family(
            "rocketmq_replica_role",
            [({"role": role}, float(role == found["role"])) for role in ROLES],
        )
        yield Family("rocketmq_replica_epoch", [({}, found["epoch"])])
        yield Family("rocketmq_replica_confirm_offset", [({}, found["confirm_offset"])])
        if found["role"] == MASTER:
            size = len(found["sync_state_set"])
            yield Family("rocketmq_replica_sync_state_set_size", [({}, size)])
            set_epoch = found["sync_state_set_epoch"]
            yield Family("rocketmq_replica_sync_state_set_epoch", [({}, set_epoch)])
        yield Family("rocketmq_replica_role_changes_total", [({}, found["role_changes"])])
        yield Family("rocketmq_replica_elections_won_total", [({}, self.roles.elections_won)])

    # -- the loop --

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            period_s = self._ctx.config.sync_broker_metadata_period / 1000
            try:
                if not await self._ask():
                    period_s = NO_MASTER_S
            except (GantryError, OSError) as error:
                self._note(str(error))
                period_s = RETRY_S
            except Exception:
                log.exception("following the controllers failed")
                self._note("following the controllers failed; see the log")
                period_s = RETRY_S
            await asyncio.sleep(ASK_PAUSE_S)
            try:
                async with asyncio.timeout(period_s):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _ask(self) -> bool:
        """Ask for the master, and follow; False when there is none."""
        if not self.broker_id:
            self.broker_id = await self._registered()
        asked_ms, found = monotonic_ms(), await self._master()
        if found is None and not self._ctx.config.async_learner:
            await self._elect()
            asked_ms, found = monotonic_ms(), await self._master()
        if found is None:
            self._note("the controllers know no master that lives")
            return False
        await self._follow(found, asked_ms)
        return True

    async def _follow(self, found: Mastership, asked_ms: int) -> None:
        """Change the role where another master, or a newer epoch, asks for it.

        `asked_ms` is the time of the question for the master.
        """
        roles, current = self.roles, self.roles.current
        if current is not None and found.epoch < current.epoch:
            return
        if current is not None and found[:3] == current[:3]:
            if found.set_epoch > current.set_epoch:
                roles.update(found)
            roles.settle(found.set_epoch, asked_ms)
        elif found.master_id != self.broker_id:
            await roles.to_slave(self.broker_id, found)
        elif not await roles.to_master(self.broker_id, found):
            self._note(f"epoch {found.epoch} of the controllers is older than the log")
            return
        self._note("")

    def _note(self, problem: str) -> None:
        if self.roles.current is not None:
            # A broker in its role serves on without controllers.
            if problem and problem != self.problem:
                log.warning("the controllers do not answer: %s", problem)
            problem = ""
        elif problem and problem != self.problem:
            log.warning("this broker has no role: %s See controllerAddr.", problem)
        self.problem = problem

    # -- requests --

    async def _registered(self) -> int:
        """Return the id of this broker, registered with its present address."""
        broker_id = await asyncio.to_thread(self._identity.load)
        if broker_id is None:
            broker_id = await self._new_id()
        config = self._ctx.config
        header = RegisterBrokerToControllerRequestHeader(
            cluster_name=config.broker_cluster_name,
            broker_name=config.broker_name,
            broker_id=broker_id,
            broker_address=self._ctx.addr,
        )
        await self._granted(RequestCode.CONTROLLER_REGISTER_BROKER, header)
        self._send_heartbeat(broker_id)
        return broker_id

    async def _new_id(self) -> int:
        """Apply for an id; an unfinished application is repeated."""
        config, identity = self._ctx.config, self._identity
        names = {"cluster_name": config.broker_cluster_name, "broker_name": config.broker_name}
        application = await asyncio.to_thread(identity.load_application)
        if application is None:
            answer = await self._granted(
                RequestCode.CONTROLLER_GET_NEXT_BROKER_ID, GetNextBrokerIdRequestHeader(**names)
            )
            next_id = answer.header(GetNextBrokerIdResponseHeader).next_broker_id
            check_code = f"{self._ctx.addr};{time.time_ns() // 1_000_000}"
            application = Application(next_id, check_code)
            await asyncio.to_thread(identity.save_application, application)
        header = ApplyBrokerIdRequestHeader(
            **names,
            applied_broker_id=application.broker_id,
            register_check_code=application.check_code,
        )
        try:
            await self._granted(RequestCode.CONTROLLER_APPLY_BROKER_ID, header)
        except RequestRefused as refusal:
            if refusal.code == ResponseCode.CONTROLLER_BROKER_ID_INVALID:
                # Another broker was faster: the next attempt asks for another id.
                await asyncio.to_thread(identity.drop_application)
            raise
        await asyncio.to_thread(identity.save, application.broker_id)
        log.info("the controllers gave this broker the id %d", application.broker_id)
        return application.broker_id

    async def _master(self) -> Mastership | None:
        """Ask for the master and the sync-state set (1004)."""
        header = GetReplicaInfoRequestHeader(broker_name=self._ctx.config.broker_name)
        try:
            answer = await self._granted(RequestCode.CONTROLLER_GET_REPLICA_INFO, header)
        except RequestRefused as refusal:
            if refusal.code == ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST:
                self.broker_id = 0  # an administrator has removed the broker set: register again
            raise
        found = answer.header(GetReplicaInfoResponseHeader)
        body = decode_body(SyncStateSet, answer.body)
        if found.master_broker_id is None or not found.master_address:
            return None
        return Mastership(
            found.master_broker_id,
            found.master_address,
            found.master_epoch or 0,
            body.sync_state_set_epoch,
            frozenset(body.sync_state_set),
        )

    async def _elect(self) -> None:
        """Ask for an election (1002); that a master exists meanwhile is fine."""
        config = self._ctx.config
        header = ElectMasterRequestHeader(
            cluster_name=config.broker_cluster_name,
            broker_name=config.broker_name,
            broker_id=self.broker_id,
        )
        self._send_heartbeat(self.broker_id)
        answer = await self._controllers.ask(RequestCode.CONTROLLER_ELECT_MASTER, header)
        if answer.code not in (ResponseCode.SUCCESS, ResponseCode.CONTROLLER_MASTER_STILL_EXIST):
            log.info("no master is elected: %s", answer.remark)

    async def _granted(self, code: RequestCode, header: Header) -> RemotingCommand:
        answer = await self._controllers.ask(code, header)
        if answer.code != ResponseCode.SUCCESS:
            raise RequestRefused(
                answer.code, f"controller {self._controllers.leader}: {answer.remark or ''}"
            )
        return answer

    # -- periodic --

    async def _watch_leader(self) -> None:
        while True:
            await asyncio.sleep(self._ctx.config.sync_controller_metadata_period / 1000)
            await self._controllers.find_leader()

    async def _beat(self) -> None:
        while True:
            if self.broker_id:
                self._send_heartbeat(self.broker_id)
            await asyncio.sleep(self._ctx.config.broker_heartbeat_interval / 1000)

    def _send_heartbeat(self, broker_id: int) -> None:
        ctx = self._ctx
        config, store = ctx.config, ctx.store
        self._controllers.send_heartbeat(
            BrokerHeartbeatRequestHeader(
                cluster_name=config.broker_cluster_name,
                broker_addr=ctx.addr,
                broker_name=config.broker_name,
                broker_id=broker_id,
                epoch=store.epochs.cache.last_epoch,
                max_offset=store.max_offset_physical,
                confirm_offset=store.gate.confirmed,
                heartbeat_timeout_mills=config.controller_heart_beat_timeout_mills,
                election_priority=config.broker_election_priority,
            )
        )


async def _repeated(work: Callable[[], Awaitable[None]]) -> None:
    """Run endless work; an unexpected error is logged, and the work begins again.

    A broker without heartbeats or reports would lose its role, or keep a wrong set, in silence.
    """
    while True:
        try:
            await work()
        except Exception:
            log.exception("following the controllers failed; trying again")
        await asyncio.sleep(RETRY_S)

"""The request codes of a controller: 904 and 1001 to 1013 without 1007 to 1010.

Codes, fields and remarks are those of RocketMQ 5.3.3's ControllerRequestProcessor. Heartbeats and
metadata are answered by every controller, all other codes by the leader. Names and addresses are
checked here, before they reach the log.
"""

import re
from collections.abc import Awaitable, Callable

from core_broker.controller.changes import Changes
from core_broker.controller.commands import ApplyBrokerId
from core_broker.controller.live_brokers import LiveBrokers
from core_broker.controller.machine import ReplicasInfo
from core_broker.controller.model import (
    ADDRESS_CHARS_MAX,
    CHECK_CODE_CHARS_MAX,
    NAME_CHARS_MAX,
    REPLICAS_MAX,
    BrokerSet,
    Candidate,
    Outcome,
)
from core_broker.controller.peers import Peers
from core_broker.errors import RequestRefused
from core_broker.raft.machine import NotLeader, ReplicatedLog
from core_broker.remoting.bodies import decode_request, encode_body
from core_broker.remoting.bodies.replicas import (
    BrokerMemberGroup,
    BrokerReplicasInfo,
    ElectMasterResponseBody,
    ReplicaIdentity,
    ReplicasEntry,
    SyncStateSet,
)
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.codes import ResponseCode as Code
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers.controller import (
    AlterSyncStateSetRequestHeader,
    AlterSyncStateSetResponseHeader,
    ApplyBrokerIdRequestHeader,
    ApplyBrokerIdResponseHeader,
    BrokerHeartbeatRequestHeader,
    CleanControllerBrokerDataRequestHeader,
    ElectMasterRequestHeader,
    ElectMasterResponseHeader,
    GetMetaDataResponseHeader,
    GetNextBrokerIdRequestHeader,
    GetNextBrokerIdResponseHeader,
    GetReplicaInfoRequestHeader,
    GetReplicaInfoResponseHeader,
    RegisterBrokerToControllerRequestHeader,
    RegisterBrokerToControllerResponseHeader,
)

#: Broker sets that one request 1006 may name.
QUERIED_SETS_MAX = 1_000
#: Priority of a broker that sends none: the last.
PRIORITY_LAST = 2**31 - 1

_ID = re.compile(r"[0-9]{1,18}")

#: Answers a request that waits for the log.
Answer = Callable[[RemotingCommand], Awaitable[RemotingCommand]]


class ControllerProcessor:
    """Handles requests with one state machine; `at_once` and `in_log` map codes to methods."""

    def __init__(
        self,
        replicas: ReplicasInfo,
        replicated: ReplicatedLog,
        live: LiveBrokers,
        changes: Changes,
        peers: Peers,
        clock_ms: Callable[[], int],
    ) -> None:
        self._replicas = replicas
        self._log = replicated
        self._live = live
        self._changes = changes
        self._peers = peers
        self._clock_ms = clock_ms
        self.at_once: dict[int, Callable[[Connection, RemotingCommand], RemotingCommand]] = {
            RequestCode.BROKER_HEARTBEAT: self.heartbeat,
            RequestCode.CONTROLLER_GET_METADATA_INFO: self.metadata,
        }
        self.in_log: dict[int, Answer] = {
            RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET: self.alter_sync_state_set,
            RequestCode.CONTROLLER_ELECT_MASTER: self.elect_master,
            RequestCode.CONTROLLER_REGISTER_BROKER: self.register_broker,
            RequestCode.CONTROLLER_GET_REPLICA_INFO: self.replica_info,
            RequestCode.CONTROLLER_GET_SYNC_STATE_DATA: self.sync_state_data,
            RequestCode.CLEAN_BROKER_DATA: self.clean_broker_data,
            RequestCode.CONTROLLER_GET_NEXT_BROKER_ID: self.next_broker_id,
            RequestCode.CONTROLLER_APPLY_BROKER_ID: self.apply_broker_id,
        }

    # -- any controller --

    def heartbeat(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """904: a registered broker lives. Heartbeats of others are not recorded."""
        header = request.header(BrokerHeartbeatRequestHeader)
        if header.broker_id is None:
            return RemotingCommand.response(
                Code.CONTROLLER_INVALID_REQUEST, "Heart beat with empty brokerId"
            )
        known = self._replicas.get(header.broker_name)
        if known is not None and header.broker_id in known.replicas:
            priority = header.election_priority
            candidate = Candidate(
                header.broker_id,
                -1 if header.epoch is None else header.epoch,
                -1 if header.max_offset is None else header.max_offset,
                PRIORITY_LAST if priority is None else priority,
            )
            self._live.heartbeat(
                known.name,
                candidate,
                connection,
                header.heartbeat_timeout_mills,
                self._clock_ms(),
            )
        return RemotingCommand.response(Code.SUCCESS, "Heart beat success")

    def metadata(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """1005: group, leader and members of the controllers."""
        leader = self._peers.by_number.get(self._log.leader_id or 0)
        return RemotingCommand.response(
            header=GetMetaDataResponseHeader(
                group=self._peers.group,
                controller_leader_id=None if leader is None else leader.name,
                controller_leader_address=None if leader is None else leader.address,
                is_leader=self._log.is_leader,
                peers=self._peers.text,
            )
        )

    # -- the leader: changes --

    async def alter_sync_state_set(self, request: RemotingCommand) -> RemotingCommand:
        """1001: a master reports the replicas with all acknowledged messages."""
        header = request.header(AlterSyncStateSetRequestHeader)
        body = decode_request(SyncStateSet, request.body)
        members = tuple(sorted(set(body.sync_state_set)))
        if len(members) > REPLICAS_MAX:
            raise _invalid(f"a set of {len(members)} replicas, {REPLICAS_MAX} are possible")
        _check_length("brokerName", header.broker_name, NAME_CHARS_MAX)
        outcome = await self._changes.alter(
            header.broker_name,
            header.master_broker_id,
            header.master_epoch,
            members,
            body.sync_state_set_epoch,
        )
        changed = _set_of(outcome)
        return RemotingCommand.response(
            header=AlterSyncStateSetResponseHeader(
                new_sync_state_set_epoch=changed.sync_state_set_epoch
            ),
            body=_sync_state_set(changed),
        )

    async def elect_master(self, request: RemotingCommand) -> RemotingCommand:
        """1002: a broker or an administrator asks for a master."""
        header = request.header(ElectMasterRequestHeader)
        asking = None if header.broker_id < 0 else header.broker_id
        _check_length("brokerName", header.broker_name, NAME_CHARS_MAX)
        outcome = await self._changes.elect(
            header.broker_name, asking, is_designated=header.designate_elect
        )
        if outcome.code not in (Code.SUCCESS, Code.CONTROLLER_MASTER_STILL_EXIST):
            raise RequestRefused(outcome.code, outcome.remark)
        found = outcome.broker_set
        assert found is not None  # both outcomes have a master
        is_new = outcome.code == Code.SUCCESS
        return RemotingCommand.response(
            outcome.code,
            outcome.remark or None,
            ElectMasterResponseHeader(
                master_broker_id=found.master_id,
                master_address=found.master_address,
                master_epoch=found.master_epoch,
                sync_state_set_epoch=found.sync_state_set_epoch,
            ),
            encode_body(
                ElectMasterResponseBody(
                    broker_member_group=_member_group(found) if is_new else None,
                    sync_state_set=list(found.sync_state_set),
                )
            ),
        )

    async def register_broker(self, request: RemotingCommand) -> RemotingCommand:
        """1003: a broker with an id tells its address, and hears who the living master is."""
        header = request.header(RegisterBrokerToControllerRequestHeader)
        name, broker_id, address = header.broker_name, header.broker_id, header.broker_address
        await self._barrier()
        found = self._replicas.get(name)
        if found is None:
            raise RequestRefused(
                Code.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED,
                f"Broker-set: {name[:NAME_CHARS_MAX]} hasn't been registered in controller",
            )
        if found.address(broker_id) != address:
            _check_text("brokerAddress", address, ADDRESS_CHARS_MAX)
            found = _set_of(await self._changes.update_address(name, broker_id, address))
        master = found.master_id
        lives = master is not None and self._live.is_alive(found, master, self._clock_ms())
        return RemotingCommand.response(
            header=RegisterBrokerToControllerResponseHeader(
                cluster_name=header.cluster_name,
                broker_name=name,
                master_broker_id=master if lives else None,
                master_address=found.master_address if lives else None,
                master_epoch=found.master_epoch if lives else None,
                sync_state_set_epoch=found.sync_state_set_epoch if lives else None,
            ),
            body=_sync_state_set(found),
        )

    async def apply_broker_id(self, request: RemotingCommand) -> RemotingCommand:
        """1013: a new broker takes the id that 1012 told it."""
        header = request.header(ApplyBrokerIdRequestHeader)
        _check_text("clusterName", header.cluster_name, NAME_CHARS_MAX)
        _check_text("brokerName", header.broker_name, NAME_CHARS_MAX)
        _check_text("registerCheckCode", header.register_check_code, CHECK_CODE_CHARS_MAX)
        address = header.register_check_code.partition(";")[0]
        _check_text("the address in registerCheckCode", address, ADDRESS_CHARS_MAX)
        _set_of(
            await self._changes.apply_broker_id(
                ApplyBrokerId(
                    header.broker_name,
                    header.cluster_name,
                    header.applied_broker_id,
                    header.register_check_code,
                )
            )
        )
        return RemotingCommand.response(
            header=ApplyBrokerIdResponseHeader(
                cluster_name=header.cluster_name, broker_name=header.broker_name
            )
        )

    async def clean_broker_data(self, request: RemotingCommand) -> RemotingCommand:
        """1011: an administrator removes brokers that will not return."""
        header = request.header(CleanControllerBrokerDataRequestHeader)
        _check_length("brokerName", header.broker_name, NAME_CHARS_MAX)
        ids = _ids(header.broker_controller_ids_to_clean or "")
        outcome = await self._changes.clean(
            header.broker_name, ids, cleans_living=header.is_clean_living_broker
        )
        _set_of(outcome)
        return RemotingCommand.response()

    # -- the leader: questions --

    async def next_broker_id(self, request: RemotingCommand) -> RemotingCommand:
        """1012: the id that a new broker of the set may apply for."""
        header = request.header(GetNextBrokerIdRequestHeader)
        await self._barrier()
        return RemotingCommand.response(
            header=GetNextBrokerIdResponseHeader(
                cluster_name=header.cluster_name,
                broker_name=header.broker_name,
                next_broker_id=self._replicas.next_broker_id(header.broker_name),
            )
        )

    async def replica_info(self, request: RemotingCommand) -> RemotingCommand:
        """1004: master and sync-state set of a broker set."""
        header = request.header(GetReplicaInfoRequestHeader)
        await self._barrier()
        found = self._replicas.get(header.broker_name)
        if found is None:
            raise RequestRefused(
                Code.CONTROLLER_BROKER_METADATA_NOT_EXIST, "Broker metadata is not existed"
            )
        return RemotingCommand.response(
            header=GetReplicaInfoResponseHeader(
                master_broker_id=found.master_id,
                master_address=found.master_address,
                master_epoch=found.master_epoch,
            ),
            body=_sync_state_set(found),
        )

    async def sync_state_data(self, request: RemotingCommand) -> RemotingCommand:
        """1006: all replicas of broker sets, with their liveness; unknown names are left out."""
        names = decode_request(list[str], request.body) if request.body else []
        if not names:
            raise RequestRefused(Code.SYSTEM_ERROR, "not set any response code")
        names = list(dict.fromkeys(names))
        if len(names) > QUERIED_SETS_MAX:
            raise _invalid(f"{len(names)} broker sets, {QUERIED_SETS_MAX} are possible")
        await self._barrier()
        found = {name: self._replicas.get(name) for name in names}
        table = {name: self._replicas_info(one) for name, one in found.items() if one is not None}
        return RemotingCommand.response(
            body=encode_body(BrokerReplicasInfo(replicas_info_table=table))
        )

    async def _barrier(self) -> None:
        """Wait until the state is up to date; raises NotLeader also on other members."""
        if not self._log.is_leader:
            raise NotLeader
        await self._log.read_barrier()

    def _replicas_info(self, found: BrokerSet) -> ReplicasEntry:
        now_ms = self._clock_ms()
        replicas = {
            broker_id: ReplicaIdentity(
                broker_name=found.name,
                broker_id=broker_id,
                broker_address=replica.address,
                alive=self._live.is_alive(found, broker_id, now_ms),
            )
            for broker_id, replica in sorted(found.replicas.items())
        }
        members = found.sync_state_set
        return ReplicasEntry(
            master_broker_id=found.master_id,
            master_address=found.master_address,
            master_epoch=found.master_epoch,
            sync_state_set_epoch=found.sync_state_set_epoch,
            in_sync_replicas=[one for key, one in replicas.items() if key in members],
            not_in_sync_replicas=[one for key, one in replicas.items() if key not in members],
        )


def _set_of(outcome: Outcome) -> BrokerSet:
    """Return the set behind a change; raises RequestRefused for a refused change."""
    if outcome.code != Code.SUCCESS:
        raise RequestRefused(outcome.code, outcome.remark)
    assert outcome.broker_set is not None
    return outcome.broker_set


def _sync_state_set(found: BrokerSet) -> bytes:
    return encode_body(
        SyncStateSet(
            sync_state_set=list(found.sync_state_set),
            sync_state_set_epoch=found.sync_state_set_epoch,
        )
    )


def _member_group(found: BrokerSet) -> BrokerMemberGroup:
    return BrokerMemberGroup(
        cluster=found.cluster,
        broker_name=found.name,
        broker_addrs={key: replica.address for key, replica in found.replicas.items()},
    )


def _check_text(field: str, text: str, chars_max: int) -> None:
    if not text.strip():
        raise _invalid(f"{field} is empty")
    _check_length(field, text, chars_max)


def _check_length(field: str, text: str, chars_max: int) -> None:
    if len(text) > chars_max:
        raise _invalid(f"{field} has {len(text)} characters, {chars_max} are possible")


def _ids(text: str) -> tuple[int, ...]:
    """Return the ids of `1;2`; raises RequestRefused for anything else."""
    parts = [part for part in text.strip().split(";") if part]
    if len(parts) > REPLICAS_MAX or not all(map(_ID.fullmatch, parts)):
        raise RequestRefused(
            Code.CONTROLLER_INVALID_CLEAN_BROKER_METADATA,
            "Please set the option <brokerControllerIdsToClean> according to the format, "
            f"expected at most {REPLICAS_MAX} numbers separated by ;",
        )
    return tuple(map(int, parts))


def _invalid(remark: str) -> RequestRefused:
    return RequestRefused(Code.CONTROLLER_INVALID_REQUEST, remark)

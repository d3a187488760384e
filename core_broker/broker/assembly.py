"""Assembly of the parts of a broker, and the connections between the parts."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core_broker.auth.server_settings import server_credentials
from core_broker.broker.access_control import AccessControl, access_control
from core_broker.broker.jobs import Jobs
from core_broker.broker.registration import Registration
from core_broker.broker.saving import Encoder, TableSaver
from core_broker.broker.truncation import finish_truncation
from core_broker.config import BrokerConfig
from core_broker.dledger.folder_check import check_folder
from core_broker.fastpath import has_kernel
from core_broker.ha.master import ReplicationMaster
from core_broker.ha.newest_offsets import NewestOffsets
from core_broker.processors.context import BrokerContext, ConfigTable
from core_broker.processors.delay_delivery import DelayDelivery
from core_broker.processors.table import RequestTable
from core_broker.processors.transaction_checks import TransactionChecks
from core_broker.remoting.client import RpcHook
from core_broker.remoting.connection import Connection
from core_broker.remoting.endpoint import Limits
from core_broker.remoting.iteration import IterationEnd, flush_each
from core_broker.remoting.saved_file import SavedFile
from core_broker.remoting.server import RemotingServer
from core_broker.remoting.tls_client import ClientTls
from core_broker.remoting.tls_server import ServerTls
from core_broker.state.config_files import read_config, write_config
from core_broker.state.consumer_offsets import ConsumerOffsets
from core_broker.state.delay_levels import DelayLevels
from core_broker.state.delay_progress import DelayProgress
from core_broker.state.groups import GroupTable
from core_broker.state.statistics import Statistics
from core_broker.state.topics import TopicTable, system_topics
from core_broker.store import MessageStore
from core_broker.store.io_threads import IoThread

# A start imports access control, elected roles and copying only where the settings need them.
if TYPE_CHECKING:
    from core_broker.auth.users_file import UsersFile
    from core_broker.broker.dledger_roles import DLedgerRoles
    from core_broker.broker.replica_manager import ReplicaManager
    from core_broker.fastpath.compiled import CompiledFastPath
    from core_broker.ha.slave import Slave


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a broker."""

    ctx: BrokerContext
    requests: RequestTable
    #: None where the kernel is not compiled.
    compiled: "CompiledFastPath | None"
    server: RemotingServer
    registration: Registration
    #: None on a slave of a fixed master.
    replication: ReplicationMaster | None
    #: None on a slave, and under controllers.
    newest_offsets: NewestOffsets | None
    jobs: Jobs
    delays: DelayDelivery
    checks: TransactionChecks
    saver: TableSaver
    executor: IoThread
    #: None on a master, and under controllers.
    fixed_slave: "Slave | None"
    #: None without controllers.
    manager: "ReplicaManager | None"
    #: None without a DLedger commit log.
    dledger: "DLedgerRoles | None"
    #: None without access control.
    access: AccessControl | None
    users: "UsersFile | None"

    @property
    def slave(self) -> "Slave | None":
        """The part that copies the log of a master; None while this broker is no slave."""
        return self.fixed_slave if self.manager is None else self.manager.roles.follower


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def assemble(config: BrokerConfig, settings_file: Path | None) -> Parts:
    """Create the parts without opening files or starting tasks.

    Raises SettingsError for values that only a part can check, such as messageDelayLevel.
    """
    delay_levels = DelayLevels(config.message_delay_level)
    topics, groups = TopicTable(), GroupTable()
    offsets, progress = ConsumerOffsets(), DelayProgress()
    executor = IoThread("broker-config")
    encoders: dict[ConfigTable, Encoder] = {
        ConfigTable.TOPICS: topics.parts,
        ConfigTable.GROUPS: groups.parts,
        ConfigTable.OFFSETS: offsets.slices,
        ConfigTable.DELAYS: lambda: [progress.encode()],
        ConfigTable.FILTERS: lambda: [ctx.filters.encode()],
    }
    saver = TableSaver(Path(config.store_path_root_dir) / "config", encoders, executor)

    def order_changed(table: Mapping[str, str]) -> None:
        if topics.apply_order(table, now_ms()):
            saver.save(ConfigTable.TOPICS)

    store, access = MessageStore(config), access_control(config, now_ms, executor)
    tls, hooks = _client_tls(config), _signatures(config)
    registration = Registration(
        topics, lambda: ctx.config, lambda: store.health.has_failed, order_changed, tls, hooks
    )
    ctx = BrokerContext(
        config=config,
        store=store,
        saver=saver,
        registrar=registration,
        now_ms=now_ms,
        host=("", 0),
        delay_levels=delay_levels,
        statistics=Statistics(config.broker_cluster_name),
        topics=topics,
        groups=groups,
        offsets=offsets,
        delay_progress=progress,
        boot_ms=now_ms(),
        gate=access.gate if access else None,
        acl1=access.acl1.files if access and access.acl1 else None,
    )
    users = _administered_files(ctx, settings_file)
    requests = RequestTable(ctx)
    compiled = compiled_fast_path(ctx, requests)
    server = broker_server(ctx, requests, compiled, tls=ServerTls(config, "broker"))
    replication = _replication(ctx)
    delays, checks = DelayDelivery(ctx, requests.turn), TransactionChecks(ctx, requests.turn)
    services = requests, registration, delays, checks, saver
    return Parts(
        ctx=ctx,
        requests=requests,
        compiled=compiled,
        server=server,
        registration=registration,
        replication=replication,
        newest_offsets=None if ctx.is_slave else NewestOffsets(ctx, tls, hooks),
        jobs=Jobs(ctx, requests, server.watchdog),
        delays=delays,
        checks=checks,
        saver=saver,
        executor=executor,
        fixed_slave=_slave(ctx, requests, registration, tls, hooks),
        manager=_replica_manager(ctx, replication, services, tls, hooks),
        dledger=_dledger_roles(ctx, services, tls, hooks),
        access=access,
        users=users,
    )


def _replica_manager(
    ctx: BrokerContext,
    replication: ReplicationMaster | None,
    services: tuple[RequestTable, Registration, DelayDelivery, TransactionChecks, TableSaver],
    tls: ClientTls | None,
    hooks: list[RpcHook],
) -> "ReplicaManager | None":
    """Make the part that follows the controllers; None without them."""
    if not ctx.config.enable_controller_mode:
        return None
    from core_broker.broker.broker_identity import BrokerIdentity
    from core_broker.broker.controllers import Controllers
    from core_broker.broker.replica_manager import ReplicaManager
    from core_broker.broker.role_changes import RoleChanges, RoleParts
    from core_broker.ha.switch_replication import SwitchReplication

    assert isinstance(replication, SwitchReplication)
    roles = RoleChanges(RoleParts(ctx, replication, *services, tls, hooks))
    controllers = Controllers(lambda: ctx.config, tls, hooks)
    return ReplicaManager(ctx, controllers, BrokerIdentity(ctx.config), roles, replication)


def _dledger_roles(
    ctx: BrokerContext,
    services: tuple[RequestTable, Registration, DelayDelivery, TransactionChecks, TableSaver],
    tls: ClientTls | None,
    hooks: list[RpcHook],
) -> "DLedgerRoles | None":
    """Make the member of a DLedger group and its roles; None without a DLedger commit log.

    Raises SettingsError for wrong peers, and for settings that would hide messages of the store.
    """
    check_folder(ctx.config)
    if not ctx.config.enable_d_leger_commit_log:
        return None
    from core_broker.broker.dledger_roles import DLedgerParts, DLedgerRoles
    from core_broker.broker.role_steps import StepParts

    requests, registration, delays, checks, saver = services
    steps = StepParts(ctx, requests, registration, delays, checks)
    return DLedgerRoles(DLedgerParts(steps, saver, tls, hooks))


def _administered_files(ctx: BrokerContext, settings_file: Path | None) -> "UsersFile | None":
    """Give the context the files that requests change; return the users' file."""
    if settings_file is not None:
        ctx.settings_file = SavedFile(settings_file, ctx.settings_text, write_config)
    if not (ctx.config.authentication_enabled or ctx.config.authorization_enabled):
        return None
    from core_broker.broker.users_file import users_file

    users = users_file(ctx.config, ctx.gate)
    if users is not None:
        ctx.users, ctx.users_file = users.owner, users.file
    return users


def _slave(
    ctx: BrokerContext,
    requests: RequestTable,
    registration: Registration,
    tls: ClientTls | None,
    hooks: list[RpcHook],
) -> "Slave | None":
    """Make the part that replicates from a fixed master; None on a master."""
    if not ctx.is_slave or ctx.config.has_elected_role:
        return None
    from core_broker.ha.slave import Slave

    slave = Slave(ctx, requests.pulls.wake, tls, hooks)
    registration.master_found = slave.found_master
    return slave


def compiled_fast_path(ctx: BrokerContext, requests: RequestTable) -> "CompiledFastPath | None":
    """Make the compiled fast path and connect the processors.

    None where no kernel is compiled, and where the gate remembers no admissions: there only the
    slow path can ask the gate.
    """
    if not has_kernel() or (ctx.gate is not None and ctx.gate.admissions is None):
        return None
    from core_broker.fastpath.compiled import CompiledFastPath

    compiled = CompiledFastPath(ctx, requests)
    requests.pulls.use_fast_path(compiled.pulls)
    requests.clients.use_cache(compiled.heartbeats)
    return compiled


def broker_server(
    ctx: BrokerContext,
    requests: RequestTable,
    compiled: "CompiledFastPath | None",
    limits: Limits | None = None,
    tls: ServerTls | None = None,
) -> RemotingServer:
    """Make a server from its two pipelines: intake of a connection, end of an iteration.

    The compiled fast path may be absent; the slow path, `requests.dispatch`, is complete.
    """

    def lost(connection: Connection) -> None:
        requests.held_pulls.drop_owner(connection)
        requests.clients.disconnected(connection)

    turn = requests.turn
    server = RemotingServer(
        name="broker",
        limits=limits or Limits(idle_close_s=ctx.config.server_channel_max_idle_time_seconds),
        # A connection tries these paths, in this order.
        intake=compiled,
        dispatch=requests.dispatch,
        # An iteration of the event loop ends with these steps, in this order.
        iteration_end=IterationEnd(
            # The fast path asks the broker again before its next request.
            always=() if compiled is None else (compiled.end_iteration,),
            # Messages of the fast path to the store, one write to the log, held pulls.
            before_write=(turn.stage_sends, turn.write_messages, turn.wake_pulls),
            # One write per connection, by the writer thread where many answers are long.
            write=flush_each if compiled is None else compiled.write,
        ),
        on_resume=requests.pulls.resumed,
        on_close=lost,
        on_stopped=None if compiled is None else compiled.stop,
        tls=tls,
    )
    ctx.store.run_flush_callbacks_by(server.iteration.run_answers)
    ctx.watchdog = server.watchdog
    ctx.tls = tls
    return server


def _replication(ctx: BrokerContext) -> ReplicationMaster | None:
    """Make the master's side of replication."""
    if ctx.config.enable_controller_mode:
        from core_broker.ha.switch_replication import SwitchReplication

        return SwitchReplication(ctx.store, lambda: ctx.config)
    if ctx.config.broker_role == "SLAVE":
        return None
    ctx.replicas = master = ReplicationMaster(ctx.store, lambda: ctx.config)
    return master


def _client_tls(config: BrokerConfig) -> ClientTls | None:
    """Return the TLS of requests to name servers and the master.

    The rule is that of RocketMQ's NettyClientConfig.
    """
    is_used = config.use_tls or config.tls_enable or config.tls_server_mode == "enforcing"
    return ClientTls.of(config) if is_used else None


def _signatures(config: BrokerConfig) -> list[RpcHook]:
    """Return the hook that signs the broker's own requests, none without credentials."""
    credentials = server_credentials(config)
    if credentials is None:
        return []
    # The client library is read only where a hook needs it.
    from core_broker.client.acl import AclRpcHook

    return [AclRpcHook(*credentials)]


def load_tables(parts: Parts) -> None:
    """Read the tables of the previous run, and add the system topics.

    Raises StoreCorrupt when neither a file nor its previous version can be read.
    """
    ctx = parts.ctx
    for table, restore in (
        (ConfigTable.TOPICS, ctx.topics.restore),
        (ConfigTable.GROUPS, ctx.groups.restore),
        (ConfigTable.OFFSETS, ctx.offsets.restore),
        (ConfigTable.DELAYS, ctx.delay_progress.restore),
        (ConfigTable.FILTERS, lambda content: ctx.filters.restore(content, now_ms())),
    ):
        read_config(parts.saver.path(table), restore)
    finish_truncation(ctx, parts.saver)
    if parts.users is not None:
        parts.users.load()
    config = ctx.config
    ctx.topics.add_system_topics(
        system_topics(
            cluster=config.broker_cluster_name,
            broker=config.broker_name,
            template_queues=config.default_topic_queue_nums,
            delay_levels=ctx.delay_levels.level_max,
            auto_create=config.auto_create_topic_enable,
            cluster_topic=config.cluster_topic_enable,
            broker_topic=config.broker_topic_enable,
            trace_topic=config.msg_trace_topic_name if config.trace_topic_enable else None,
        )
    )

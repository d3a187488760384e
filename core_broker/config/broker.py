"""The settings of a broker and of its message store, with the keys and defaults of RocketMQ 4.9.8.

Compatible with BrokerConfig, MessageStoreConfig and NettyServerConfig. Times are in milliseconds
and sizes in bytes, unless a comment names another unit. docs/settings.md explains every key.
"""

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from core_broker.config.access import AccessSettings
from core_broker.config.addresses import local_address
from core_broker.config.auth_classes import (
    AuthenticationMetadataProvider,
    AuthenticationProvider,
    AuthenticationStrategy,
    AuthorizationMetadataProvider,
    AuthorizationMode,
    AuthorizationProvider,
    AuthorizationStrategy,
)
from core_broker.config.settings import INT_MAX, computed, key
from core_broker.limits import (
    BROKER_HTTP_PORT,
    MESSAGE_BYTES_MAX,
    PORT_MAX,
    REPLICATED_BYTES_MAX,
)

FlushDiskType = Literal["ASYNC_FLUSH", "SYNC_FLUSH"]
BrokerRole = Literal["ASYNC_MASTER", "SYNC_MASTER", "SLAVE"]

#: Reasons of keys that name Java classes.
BUILT_IN = "the provider is built in"
STATELESS = "signatures are always checked, and decisions are remembered until the users change"
#: Permission bits of a topic that clients may read (4) and write (2).
PERM_READ_WRITE = 6
#: Delays of the levels 1 to 18.
DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig(AccessSettings):
    """Every setting of a broker and of its message store."""

    # Identity.
    broker_cluster_name: str = key("DefaultCluster", important=True)
    broker_name: str = computed(socket.gethostname, important=True)
    broker_id: int = key(0, important=True)
    broker_role: BrokerRole = key("ASYNC_MASTER", important=True)  # noqa: RUF009
    broker_ip1: str = computed(local_address, important=True)
    broker_ip2: str = computed(local_address, important=True)
    region_id: str = "DefaultRegion"
    rocketmq_home: str = key("", important=True)

    # Listeners. Port 0 is any free port; the VIP port is then any free port, too.
    listen_port: int = key(10911, high=PORT_MAX)
    ha_listen_port: int = key(0, high=PORT_MAX)  # 0: listenPort + 1
    ha_bind_address: str = ""  # Gantry's own; "": bindAddress
    ha_allowed_addresses: str = ""  # Gantry's own; "": see ha/admission.py
    ha_tls_enable: bool = False  # Gantry's own: a slave copies over TLS
    ha_tls_need_client_auth: bool = False  # Gantry's own: a master asks slaves for certificates
    bind_address: str = "0.0.0.0"  # noqa: S104 - other machines connect to a broker
    http_port: int = key(BROKER_HTTP_PORT, low=-1, high=PORT_MAX)  # Gantry's own; -1: off
    metrics_token_file: str = ""  # Gantry's own; "": only this machine reads metrics
    server_channel_max_idle_time_seconds: int = key(120, low=1, high=INT_MAX)

    # Name servers.
    namesrv_addr: str = key("", important=True, updatable=True)
    register_name_server_period: int = key(30_000, updatable=True)  # clipped to 10..60 s
    register_broker_timeout_mills: int = key(6_000, low=1, updatable=True)
    force_register: bool = key(True, updatable=True)
    compressed_register: bool = key(False, updatable=True)

    # Topics and groups.
    broker_permission: int = key(PERM_READ_WRITE, high=7, updatable=True)
    default_topic_queue_nums: int = key(8, low=1, high=INT_MAX, updatable=True)
    auto_create_topic_enable: bool = key(True, important=True, updatable=True)
    auto_create_subscription_group: bool = key(True, important=True, updatable=True)
    # Gantry's own: limits of creation on first use, so that forged requests cannot fill the memory.
    max_auto_create_topic_num: int = key(100_000, high=INT_MAX, updatable=True)
    max_auto_create_subscription_group_num: int = key(100_000, high=INT_MAX, updatable=True)
    cluster_topic_enable: bool = True
    broker_topic_enable: bool = True
    trace_topic_enable: bool = key(False, important=True)
    msg_trace_topic_name: str = key("RMQ_SYS_TRACE_TOPIC", important=True)
    # Gantry's own: RocketMQ creates dead-letter topics write-only (2) up to 4.9.0, 6 from 4.9.4.
    dlq_topic_perm: int = key(2, low=2, high=6, updatable=True)

    # Sending.
    max_message_size: int = key(MESSAGE_BYTES_MAX, low=1, high=INT_MAX, updatable=True)
    trace_on: bool = key(True, updatable=True)
    reject_transaction_message: bool = key(False, important=True, updatable=True)
    store_reply_message_enable: bool = key(True, updatable=True)
    start_accept_send_request_time_stamp: int = key(0, updatable=True)
    broker_fast_failure_enable: bool = key(True, updatable=True)
    wait_time_mills_in_send_queue: int = key(200, updatable=True)
    wait_time_mills_in_pull_queue: int = key(5_000, updatable=True)
    wait_time_mills_in_heartbeat_queue: int = key(31_000, updatable=True)
    wait_time_mills_in_transaction_queue: int = key(3_000, updatable=True)
    send_thread_pool_queue_capacity: int = key(10_000, low=1, high=INT_MAX)
    pull_thread_pool_queue_capacity: int = key(100_000, low=1, high=INT_MAX)
    os_page_cache_busy_time_out_mills: int = key(1_000, updatable=True)

    # Gantry's own: common-case requests take the compiled fast path where the kernel is built.
    kernel_enable: bool = key(True, updatable=True)
    # Gantry's own: the kernel reads connections without TLS itself, where the system has epoll.
    kernel_poll_enable: bool = key(True, updatable=True)

    # Pulling.
    long_polling_enable: bool = key(True, updatable=True)
    short_polling_time_mills: int = key(1_000, low=1, updatable=True)
    notify_consumer_ids_changed_enable: bool = key(True, updatable=True)
    slave_read_enable: bool = key(False, updatable=True)
    disable_consume_if_consumer_read_slowly: bool = key(False, updatable=True)
    consumer_fallbehind_threshold: int = key(16 * 1024**3, updatable=True)
    transfer_msg_by_heap: bool = key(True, no_effect="the broker has one way to answer a pull")
    max_transfer_bytes_on_message_in_memory: int = key(262_144, low=1, updatable=True)
    max_transfer_count_on_message_in_memory: int = key(32, low=1, updatable=True)
    max_transfer_bytes_on_message_in_disk: int = key(65_536, low=1, updatable=True)
    max_transfer_count_on_message_in_disk: int = key(8, low=1, updatable=True)
    access_message_in_memory_max_ratio: int = key(40, high=100, updatable=True)  # percent
    flush_consumer_offset_interval: int = key(5_000, low=1, updatable=True)

    # Filters.
    enable_property_filter: bool = key(False, updatable=True)
    enable_calc_filter_bit_map: bool = key(
        False, no_effect="filters are evaluated on message properties, not on bit maps"
    )
    filter_support_retry: bool = key(False, updatable=True)
    expect_consumer_num_use_filter: int = key(32, low=1)
    max_error_rate_of_bloom_filter: int = key(20, low=1, high=99)  # percent
    filter_server_nums: int = key(
        0, high=0, no_effect="there are no filter servers; mqadmin exportConfigs reads the key"
    )

    # Delayed, failed and transactional messages.
    message_delay_level: str = DELAY_LEVELS
    flush_delay_offset_interval: int = key(10_000, low=1, updatable=True)
    transaction_time_out: int = key(6_000, updatable=True)
    transaction_check_max: int = key(15, low=1, updatable=True)
    transaction_check_interval: int = key(60_000, low=1, updatable=True)

    # Files.
    store_path_root_dir: str = computed(lambda: str(Path.home() / "store"), important=True)
    store_path_commit_log: str = key("", important=True)  # "": storePathRootDir/commitlog
    mapped_file_size_commit_log: int = key(1024**3, low=1024, high=INT_MAX)
    mapped_file_size_consume_queue: int = key(6_000_000, low=20, high=INT_MAX)
    enable_consume_queue_ext: bool = key(
        False, no_effect="filters are evaluated on message properties, not on bit maps"
    )
    message_index_enable: bool = key(True, updatable=True)
    message_index_safe: bool = False
    max_hash_slot_num: int = key(5_000_000, low=1, high=INT_MAX)
    max_index_num: int = key(20_000_000, low=2, high=INT_MAX)
    default_query_max_num: int = key(32, low=1, high=1_000, updatable=True)
    max_msgs_num_batch: int = key(64, low=1, high=1_000, updatable=True)
    check_crc_on_recover: bool = True
    duplication_enable: bool = key(
        False, no_effect="RocketMQ abandoned the replication protocol of this key"
    )
    transient_store_pool_enable: bool = key(
        False, important=True, no_effect="messages are written to the commit log file directly"
    )
    warm_maped_file_enable: bool = key(
        False, no_effect="the commit log is written with pwrite(), not through a memory mapping"
    )
    enable_lmq: bool = False
    enable_multi_dispatch: bool = False

    # Flushing.
    flush_disk_type: FlushDiskType = key("ASYNC_FLUSH", important=True)  # noqa: RUF009
    sync_flush_timeout: int = key(5_000, low=1, updatable=True)
    flush_commit_log_timed: bool = key(
        True, no_effect="the commit log is always flushed at fixed intervals"
    )
    flush_interval_commit_log: int = key(500, low=1, updatable=True)
    flush_commit_log_least_pages: int = key(4, updatable=True)
    flush_commit_log_thorough_interval: int = key(10_000, low=1, updatable=True)
    commit_interval_commit_log: int = key(
        200, low=1, no_effect="only transientStorePoolEnable reads it, which has no effect"
    )
    flush_interval_consume_queue: int = key(1_000, low=1, updatable=True)
    flush_consume_queue_least_pages: int = key(2, updatable=True)
    flush_consume_queue_thorough_interval: int = key(60_000, low=1, updatable=True)

    # Retention. Ratios are percentages of the disk's capacity.
    delete_when: str = key("04", updatable=True)  # hours of the day, separated by ";"
    file_reserved_time: int = key(72, updatable=True)  # hours
    disk_max_used_space_ratio: int = key(75, updatable=True)
    disk_space_clean_forcibly_ratio: int = key(85, low=1, high=100, updatable=True)
    disk_space_warning_level_ratio: int = key(90, low=1, high=100, updatable=True)
    clean_file_forcibly_enable: bool = key(True, updatable=True)
    clean_resource_interval: int = key(10_000, low=1)
    delete_commit_log_files_interval: int = key(100, updatable=True)
    delete_consume_queue_files_interval: int = key(100, updatable=True)

    # Replication.
    ha_master_address: str = ""  # "": the HA address that the name servers know
    ha_send_heartbeat_interval: int = key(5_000, low=1, high=INT_MAX)
    ha_housekeeping_interval: int = key(20_000, low=1, high=INT_MAX)
    ha_transfer_batch_size: int = key(32_768, low=1, high=REPLICATED_BYTES_MAX)
    ha_slave_fallbehind_max: int = key(256 * 1024 * 1024, updatable=True)
    slave_timeout: int = key(3_000, low=1, high=INT_MAX, updatable=True)
    # RocketMQ 5's default of 1 would make SYNC_MASTER wait for no slave; RocketMQ 4 waits for one.
    in_sync_replicas: int = key(2, low=1, high=64, updatable=True)
    ha_flow_control_enable: bool = key(False, updatable=True)
    max_ha_transfer_byte_in_second: int = key(100 * 1024 * 1024, low=1, updatable=True)
    # Gantry's own: the number of slaves, and the start of a slave with an empty log.
    max_ha_connection_num: int = key(64, low=1, high=10_000)
    ha_transfer_from_first_file: bool = key(False, updatable=True)
    offset_check_in_slave: bool = key(False, no_effect="every broker checks offsets")

    # Automatic failover under controllers, with RocketMQ 5.3.3's keys and defaults.
    enable_controller_mode: bool = key(False, important=True)
    controller_addr: str = key("", important=True, updatable=True)  # separated by ";"
    store_path_epoch_file: str = ""  # "": storePathRootDir/epochFileCheckpoint
    store_path_broker_identity: str = ""  # "": storePathRootDir/brokerIdentity
    all_ack_in_sync_state_set: bool = False
    min_in_sync_replicas: int = key(1, low=1, high=64, updatable=True)
    enable_auto_in_sync_replicas: bool = key(False, updatable=True)
    ha_max_time_slave_not_catchup: int = key(15_000, low=100, high=INT_MAX, updatable=True)
    check_sync_state_set_period: int = key(5_000, low=100, high=INT_MAX, updatable=True)
    sync_broker_metadata_period: int = key(5_000, low=100, high=INT_MAX, updatable=True)
    sync_controller_metadata_period: int = key(10_000, low=100, high=INT_MAX, updatable=True)
    broker_heartbeat_interval: int = key(1_000, low=100, high=INT_MAX, updatable=True)
    controller_heart_beat_timeout_mills: int = key(10_000, low=100, high=INT_MAX, updatable=True)
    broker_election_priority: int = key(INT_MAX, high=INT_MAX, updatable=True)
    async_learner: bool = False
    sync_from_last_file: bool = False

    # DLedger commit logs, with the keys of RocketMQ 4.9.8.
    enable_d_leger_commit_log: bool = key(False, important=True)
    d_leger_group: str = key("", important=True)  # "": brokerName
    d_leger_peers: str = key("", important=True)  # n0-host:port;n1-host:port;…
    d_leger_self_id: str = key("", important=True)
    d_leger_tls_enable: bool = False  # Gantry's own: members connect to each other over TLS
    preferred_leader_id: str = ""  # ids of dLegerPeers, separated by ;
    store_path_d_ledger_commit_log: str = ""  # "": dledger-<dLegerSelfId>/data

    # Access control.
    acl_enable: bool = key(False, important=True)
    acl_java_checks: bool = (
        False  # Gantry's own; True: the checks of RocketMQ 4.9.8, with its holes
    )
    # Access control 2.0. Class names of RocketMQ are aliases of what is built in.
    authentication_provider: AuthenticationProvider = key("", no_effect=BUILT_IN)  # noqa: RUF009
    authentication_metadata_provider: AuthenticationMetadataProvider = key(  # noqa: RUF009
        "", no_effect=BUILT_IN
    )
    authentication_strategy: AuthenticationStrategy = key("", no_effect=STATELESS)  # noqa: RUF009
    authorization_provider: AuthorizationProvider = key("", no_effect=BUILT_IN)  # noqa: RUF009
    authorization_metadata_provider: AuthorizationMetadataProvider = key(  # noqa: RUF009
        "", no_effect=BUILT_IN
    )
    authorization_strategy: AuthorizationStrategy = key("", no_effect=STATELESS)  # noqa: RUF009
    migrate_auth_from_v1_enabled: bool = False
    # Gantry's own.
    authorization_mode: AuthorizationMode = "STRICT"
    # Gantry's own: the audit log of denied and administrative requests.
    access_log_path: str = ""  # "": audit/access.log below storePathRootDir
    max_access_log_file_size: int = key(16 * 1024 * 1024, low=4096)
    max_access_log_file_num: int = key(8, high=1_000)
    access_replay_window_seconds: int = key(0, high=86_400)  # 0: off
    use_tls: bool = False
    config_black_list: str = "configBlackList;brokerConfigPath"

    @property
    def commit_log_dir(self) -> str:
        """Folder of the commit log; it may lie on another disk than the store folder."""
        if self.enable_d_leger_commit_log:
            return self.store_path_d_ledger_commit_log or str(self.d_ledger_dir / "data")
        return self.store_path_commit_log or str(Path(self.store_path_root_dir) / "commitlog")

    @property
    def has_elected_role(self) -> bool:
        """True when controllers or a DLedger group choose the role of the running broker."""
        return self.enable_controller_mode or self.enable_d_leger_commit_log

    @property
    def entry_index_dir(self) -> str:
        """Folder of the index of a DLedger commit log."""
        return str(self.d_ledger_dir / "index")

    @property
    def d_ledger_dir(self) -> Path:
        """Folder of a DLedger commit log: data, index, term and vote."""
        return Path(self.store_path_root_dir) / f"dledger-{self.d_leger_self_id}"

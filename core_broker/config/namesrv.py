"""The settings of a name server, with the keys and defaults of RocketMQ 4.9.8.

Compatible with NamesrvConfig and the listening keys of NettyServerConfig.
"""

from dataclasses import dataclass
from pathlib import Path

from core_broker.config.access import AccessSettings
from core_broker.config.controller_keys import ControllerKeys
from core_broker.config.settings import INT_MAX, computed, key
from core_broker.limits import NAMESRV_HTTP_PORT, PORT_MAX


def _below_home(file: str) -> str:
    return str(Path.home() / "namesrv" / file)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesrvConfig(ControllerKeys, AccessSettings):
    """Every setting of a name server."""

    rocketmq_home: str = key("", no_effect="no file below the installation folder is read")
    kv_config_path: str = computed(lambda: _below_home("kvConfig.json"))
    config_store_path: str = computed(lambda: _below_home("namesrv.properties"))
    product_env_name: str = key(
        "center", no_effect="only clusterTest reads it, which is not available in this version"
    )
    cluster_test: bool = False
    order_message_enable: bool = key(False, updatable=True)
    config_black_list: str = "configBlackList;configStorePath;kvConfigPath"

    listen_port: int = key(9876, high=PORT_MAX)  # 0: any free port
    bind_address: str = "0.0.0.0"  # noqa: S104 - other machines connect to a name server
    http_port: int = key(NAMESRV_HTTP_PORT, low=-1, high=PORT_MAX)  # Gantry's own; -1: off
    metrics_token_file: str = ""  # Gantry's own; "": only this machine reads metrics
    server_channel_max_idle_time_seconds: int = key(120, low=1, high=INT_MAX)

    # From RocketMQ 5, with the behaviour of 4.9.8 as default.
    return_order_topic_config_to_broker: bool = key(True, updatable=True)
    scan_not_active_broker_interval: int = key(10_000, low=1)
    enable_controller_in_namesrv: bool = key(False, important=True)

    # Gantry's own: limits of the key-value table, bytes.
    max_kv_value_size: int = key(64 * 1024, low=1, high=INT_MAX)
    max_kv_table_size: int = key(4 * 1024 * 1024, low=1, high=INT_MAX)

    # Gantry's own: the cluster in the resource Cluster:name that administration needs.
    broker_cluster_name: str = "DefaultCluster"

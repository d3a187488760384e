"""The settings of a controller, with the keys and defaults of RocketMQ 5.3.3.

Compatible with ControllerConfig. Gantry's controllers have one consensus of their own, so the keys
of jRaft do not exist; the keys of DLedger name the group and its members.
"""

from dataclasses import dataclass
from pathlib import Path

from core_broker.config.settings import INT_MAX, computed, key
from core_broker.config.tls import TlsSettings
from core_broker.limits import PORT_MAX

#: TCP port of the controller's HTTP side listener.
CONTROLLER_HTTP_PORT = 5560


def _below_home(file: str) -> str:
    return str(Path.home() / "controller" / file)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig(TlsSettings):
    """Every setting of a controller."""

    rocketmq_home: str = key("", no_effect="no file below the installation folder is read")
    config_store_path: str = computed(lambda: _below_home("controller.properties"))
    controller_type: str = key("DLedger", no_effect="controllers have one consensus of their own")
    controller_d_leger_group: str = key("controller", important=True)
    controller_d_leger_peers: str = key("n0-127.0.0.1:9878", important=True)
    controller_d_leger_self_id: str = key("n0", important=True)
    controller_store_path: str = computed(lambda: _below_home("raft"), important=True)
    mapped_file_size: int = key(
        1024 * 1024 * 1024, low=1, high=INT_MAX, no_effect="the log has segments of its own size"
    )
    scan_not_active_broker_interval: int = key(5_000, low=100, high=600_000)
    scan_inactive_master_interval: int = key(5_000, low=100, high=600_000)
    elect_master_max_retry_count: int = key(3, low=1, high=100, updatable=True)
    enable_elect_unclean_master: bool = key(False, updatable=True, important=True)
    notify_broker_role_changed: bool = key(True, updatable=True)
    is_process_read_event: bool = key(False, no_effect="every read is linearizable")
    config_black_list: str = "configBlackList;configStorePath"

    # Gantry's own.
    controller_raft_peers: str = key("", important=True)  # "": each peer's port + 1
    bind_address: str = ""  # "": the host of the own peer
    http_port: int = key(CONTROLLER_HTTP_PORT, low=-1, high=PORT_MAX)  # -1: off
    metrics_token_file: str = ""  # "": only this machine reads metrics
    server_channel_max_idle_time_seconds: int = key(120, low=1, high=INT_MAX)

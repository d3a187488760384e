"""The keys that a controller has as a program of its own and in a name server.

Compatible with ControllerConfig of RocketMQ 5.3.3; see controller.py.
"""

from dataclasses import dataclass
from pathlib import Path

from core_broker.config.settings import INT_MAX, computed, key


def below_home(file: str) -> str:
    """Return the default path of a controller's file."""
    return str(Path.home() / "controller" / file)


@dataclass(frozen=True, kw_only=True)
class ControllerKeys:
    """Settings of controllers. No slots: Python allows slots in one base class only."""

    __slots__ = ()

    controller_type: str = key("DLedger", no_effect="controllers have one consensus of their own")
    controller_d_leger_group: str = key("controller", important=True)
    controller_d_leger_peers: str = key("n0-127.0.0.1:9878", important=True)
    controller_d_leger_self_id: str = key("n0", important=True)
    controller_store_path: str = computed(lambda: below_home("raft"), important=True)
    mapped_file_size: int = key(
        1024 * 1024 * 1024, low=1, high=INT_MAX, no_effect="the log has segments of its own size"
    )
    scan_inactive_master_interval: int = key(5_000, low=100, high=600_000)
    elect_master_max_retry_count: int = key(3, low=1, high=100, updatable=True)
    enable_elect_unclean_master: bool = key(False, updatable=True, important=True)
    notify_broker_role_changed: bool = key(True, updatable=True)
    is_process_read_event: bool = key(False, no_effect="every read is linearizable")

    # Gantry's own.
    controller_raft_peers: str = key("", important=True)  # "": each peer's port + 1
    controller_allowed_addresses: str = ""  # "": everybody
    raft_allowed_addresses: str = ""  # "": the hosts of the peers
    raft_tls_need_client_auth: bool = False

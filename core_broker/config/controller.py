"""The settings of a controller, with the keys and defaults of RocketMQ 5.3.3.

Compatible with ControllerConfig. Gantry's controllers have one consensus of their own, so the keys
of jRaft do not exist; the keys of DLedger name the group and its members. A name server with
enableControllerInNamesrv=true has the keys of `ControllerKeys` (controller_keys.py), too.
"""

from dataclasses import dataclass

from core_broker.config.access import AccessSettings
from core_broker.config.controller_keys import ControllerKeys, below_home
from core_broker.config.settings import INT_MAX, computed, key
from core_broker.limits import PORT_MAX

#: TCP port of the controller's HTTP side listener.
CONTROLLER_HTTP_PORT = 5560


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig(ControllerKeys, AccessSettings):
    """Every setting of a controller."""

    rocketmq_home: str = key("", no_effect="no file below the installation folder is read")
    config_store_path: str = computed(lambda: below_home("controller.properties"))
    scan_not_active_broker_interval: int = key(5_000, low=100, high=600_000)
    config_black_list: str = "configBlackList;configStorePath"

    # Gantry's own.
    bind_address: str = ""  # "": the host of the own peer
    http_port: int = key(CONTROLLER_HTTP_PORT, low=-1, high=PORT_MAX)  # -1: off
    metrics_token_file: str = ""  # "": only this machine reads metrics
    server_channel_max_idle_time_seconds: int = key(120, low=1, high=INT_MAX)

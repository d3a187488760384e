"""Controllers and further replicas of the broker: `up --replicas 3`.

name server, controllers ─▶ broker, replica-2, replica-3

All replicas have the settings of conf/broker.conf. The controllers elect one of them as master, and
another one when the master dies. The first replica has the store of a start without the option; it
must not run alone on that store afterwards, since another replica may have newer messages.
"""

from collections.abc import Mapping
from pathlib import Path

from console.launcher.errors import EXIT_USAGE, StartError
from console.launcher.options import Options
from console.launcher.ports import ControllerPorts, Ports
from console.launcher.probes import bracketed, http_ready
from console.launcher.service import Service, python

IDENTITY = "brokerIdentity"


def is_replicated(home: Path) -> bool:
    """Return whether the folder was started with replicas before."""
    return (home / "store" / IDENTITY).exists()


def check_replicas(options: Options) -> None:
    """Raise StartError for a start that could lose messages."""
    if options.replicas == 1 and is_replicated(options.home):
        raise StartError(
            f"{options.home} was started with --replicas: another replica may have newer messages. "
            "Give --replicas again.",
            EXIT_USAGE,
        )


def controller_services(
    options: Options, ports: Ports, host: str, stop_rank: int, access_env: Mapping[str, str]
) -> list[Service]:
    """Return the controllers; `host` is the address that programs on this machine connect to.

    `access_env` are the settings of access control and TLS.
    """
    near = bracketed(host)
    numbered = list(enumerate(ports.controllers))
    env = {
        "ROCKETMQ_CONTROLLER_D_LEGER_PEERS": ";".join(f"n{n}-{near}:{p.port}" for n, p in numbered),
        "ROCKETMQ_CONTROLLER_RAFT_PEERS": ";".join(f"n{n}-{near}:{p.raft}" for n, p in numbered),
        "ROCKETMQ_BIND_ADDRESS": options.host,
        "ROCKETMQ_SCAN_NOT_ACTIVE_BROKER_INTERVAL": "1000",
        "ROCKETMQ_SCAN_INACTIVE_MASTER_INTERVAL": "1000",
        **access_env,
    }
    return [_controller(options, n, p, env, host, stop_rank) for n, p in numbered]


def _controller(
    options: Options,
    number: int,
    ports: ControllerPorts,
    common: dict[str, str],
    host: str,
    stop_rank: int,
) -> Service:
    folder = options.home / "controllers" / f"n{number}"
    return Service(
        name=f"controller-{number}",
        command=python("-m", "core_broker.controller"),
        env={
            **common,
            "ROCKETMQ_CONTROLLER_D_LEGER_SELF_ID": f"n{number}",
            "ROCKETMQ_CONTROLLER_STORE_PATH": str(folder / "raft"),
            "ROCKETMQ_CONFIG_STORE_PATH": str(folder / "controller.properties"),
            "ROCKETMQ_HTTP_PORT": str(ports.http),
        },
        probe=http_ready(host, ports.http),
        needed=True,
        hint="Without controllers no replica becomes master.",
        stop_rank=stop_rank,
    )


def replica_env(ports: Ports, host: str) -> dict[str, str]:
    """Return the settings that make a broker a replica."""
    controllers = ";".join(f"{bracketed(host)}:{each.port}" for each in ports.controllers)
    return {
        "ROCKETMQ_ENABLE_CONTROLLER_MODE": "true",
        "ROCKETMQ_CONTROLLER_ADDR": controllers,
        "ROCKETMQ_ALL_ACK_IN_SYNC_STATE_SET": "true",
    }

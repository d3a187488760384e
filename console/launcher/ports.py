"""Choice and check of all ports before the first program starts.

The check costs a millisecond and turns "a child died" into "port 9876 is taken, use
--namesrv-port". A port can still be taken between check and start; the program then reports the
error.
"""

import errno
import socket
from dataclasses import dataclass, replace

import psutil

from console.launcher.errors import EXIT_USAGE, StartError
from console.launcher.options import BROKER_PORT, NAMESRV_PORT, Options
from core_broker.limits import PORT_MAX

VIP_DISTANCE = 2  # the VIP port of a RocketMQ broker is listenPort - 2
HA_DISTANCE = 1  # the port for slaves is listenPort + 1; a broker replaces it when it is in use
NAMESRV_HTTP_PORT = 5558
BROKER_HTTP_PORT = 5559
#: Distance between the ports of two brokers of `--brokers`: 10911, 10921, and so on.
BROKER_DISTANCE = 10
FREE_PORT_TRIES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPorts:
    """The ports of a further broker; VIP port and port for slaves lie beside `broker`."""

    broker: int
    http: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerPorts:
    """The ports of a controller."""

    port: int
    raft: int
    http: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """All ports of one start, none is 0."""

    namesrv: int
    namesrv_http: int
    broker: int
    broker_http: int
    console: int
    redis: int
    #: The brokers of --brokers besides the first one.
    brokers: tuple[BrokerPorts, ...] = ()
    #: The replicas besides the broker, and the controllers; empty without --replicas.
    replicas: tuple[BrokerPorts, ...] = ()
    controllers: tuple[ControllerPorts, ...] = ()

    @property
    def broker_vip(self) -> int:
        return self.broker - VIP_DISTANCE


def choose_ports(options: Options, brokers: int = 1) -> Ports:
    """Check the requested ports and choose free ports for 0; StartError names port and option.

    `brokers` is the number of brokers with messages of their own.

    The HTTP side ports are the default ports when the main port is the default port, else free
    ports, so that a second Gantry on a machine needs three options and not five.
    """
    chosen: set[int] = set()

    def settle(port: int, option: str) -> int:
        settled = port or free_port(options.host, avoid=chosen)
        if port:
            require_free(options.host, port, option)
        chosen.add(settled)
        return settled

    namesrv = settle(options.namesrv_port, "--namesrv-port")
    broker = settle_broker(options, chosen)
    console = settle(options.console_port, "--console-port")
    namesrv_http = NAMESRV_HTTP_PORT if options.namesrv_port == NAMESRV_PORT else 0
    broker_http = BROKER_HTTP_PORT if options.broker_port == BROKER_PORT else 0
    return Ports(
        namesrv=namesrv,
        broker=broker,
        console=console,
        namesrv_http=settle_side_port(options.host, namesrv_http, chosen),
        broker_http=settle_side_port(options.host, broker_http, chosen),
        redis=settle_side_port("127.0.0.1", 0, chosen),
        brokers=tuple(
            settle_further_broker(options, number, chosen) for number in range(1, brokers)
        ),
        replicas=tuple(settle_replica(options, chosen) for _ in range(options.replicas - 1)),
        controllers=tuple(
            settle_controller(options.host, chosen) for _ in range(options.controllers)
        ),
    )


def settle_further_broker(options: Options, number: int, chosen: set[int]) -> BrokerPorts:
    """Choose the ports of a broker of --brokers; `number` is 0 for the first broker."""
    distance = number * BROKER_DISTANCE
    port = options.broker_port + distance if options.broker_port else 0
    if port > PORT_MAX:
        raise StartError(
            f"Port {port} of broker {number + 1} is above {PORT_MAX}. "
            "Choose a lower port with --broker-port (0: any free).",
            EXIT_USAGE,
        )
    broker = settle_broker(replace(options, broker_port=port), chosen)
    http = BROKER_HTTP_PORT + distance if options.broker_port == BROKER_PORT else 0
    return BrokerPorts(broker=broker, http=settle_side_port(options.host, http, chosen))


def settle_replica(options: Options, chosen: set[int]) -> BrokerPorts:
    """Choose the ports of a further replica."""
    broker = settle_broker(replace(options, broker_port=0), chosen)
    return BrokerPorts(broker=broker, http=settle_side_port(options.host, 0, chosen))


def settle_controller(host: str, chosen: set[int]) -> ControllerPorts:
    """Choose the ports of a controller."""
    port, raft, http = (settle_side_port(host, 0, chosen) for _ in range(3))
    return ControllerPorts(port=port, raft=raft, http=http)


def settle_broker(options: Options, chosen: set[int]) -> int:
    """Choose the broker's port; the VIP port must be free too."""
    if options.broker_port:
        require_free(options.host, options.broker_port, "--broker-port")
        vip = options.broker_port - VIP_DISTANCE
        require_free(options.host, vip, "--broker-port", role=" (the broker's VIP port)")
        chosen |= {options.broker_port, vip, options.broker_port + HA_DISTANCE}
        return options.broker_port
    for _ in range(FREE_PORT_TRIES):
        port = free_port(options.host, avoid=chosen)
        vip = port - VIP_DISTANCE
        if vip not in chosen and is_free(options.host, vip):
            chosen |= {port, vip, port + HA_DISTANCE}
            return port
    raise StartError("No two free ports for the broker were found; give one with --broker-port.")


def settle_side_port(host: str, wanted: int, chosen: set[int]) -> int:
    """Choose a side port. A taken port is replaced, because no option sets side ports."""
    port = wanted if wanted and is_free(host, wanted) else free_port(host, avoid=chosen)
    chosen.add(port)
    return port


def free_port(host: str, *, avoid: set[int]) -> int:
    """Return a free port from the kernel."""
    for _ in range(FREE_PORT_TRIES):
        with bound(host, 0) as probe:
            port = int(probe.getsockname()[1])
        if port not in avoid:
            return port
    raise StartError(f"No free port was found on {host}.")


def is_free(host: str, port: int) -> bool:
    """Return True when a server can listen on the port now."""
    try:
        bound(host, port).close()
    except (OSError, OverflowError):
        return False
    return True


def bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    probe = socket.socket(family, socket.SOCK_STREAM)
    try:
        # As servers do: a port with connections in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
    except BaseException:
        probe.close()
        raise
    return probe


def require_free(host: str, port: int, option: str, role: str = "") -> None:
    try:
        bound(host, port).close()
    except (OSError, OverflowError) as problem:
        raise StartError(port_taken(host, port, option, role, problem), EXIT_USAGE) from None


def port_taken(host: str, port: int, option: str, role: str, problem: Exception) -> str:
    reason = getattr(problem, "strerror", None) or str(problem)
    said = f"Port {port}{role} on {host} cannot be used: {reason}."
    number = getattr(problem, "errno", None)
    if number == errno.EADDRNOTAVAIL:
        return f"{said} That address is not of this machine; choose another with --host."
    if number == errno.EADDRINUSE:
        holder = holder_of(port)
        by = f" It is held by {holder}." if holder else ""
        return f"{said}{by} Stop that program, or choose another port with {option} (0: any free)."
    return f"{said} Choose another port with {option} (0 takes any free one)."


def holder_of(port: int) -> str | None:
    """Return the process that listens on a port; None without the permission to list processes."""
    try:
        for each in psutil.net_connections(kind="tcp"):
            if each.status == psutil.CONN_LISTEN and each.laddr.port == port and each.pid:
                return f"process {each.pid} ({psutil.Process(each.pid).name()})"
    except psutil.Error:
        return None
    return None

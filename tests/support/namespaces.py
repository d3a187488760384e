"""Machines on one machine: network namespaces around a router, whose links can be cut.

    with Network(["a", "b"]) as network:
        network.command("a")               a prefix for the command line of a program on host a
        network.cut(["a"], ["b"])          packets from a to b are lost, without any error
        network.heal()

The thread that enters the block is on a host of its own, "test", until it leaves the block; threads
that it starts are there, too. A cut is a rule of the router: both ends see silence only, as when a
cable is cut. Needs Linux, root, and the program `ip`; `why_impossible` says what is missing.
"""

import ctypes
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Self

TEST = "test"
#: Argument of setns(2): a network namespace.
_CLONE_NEWNET = 0x40000000
_numbers = itertools.count()


def why_impossible() -> str:
    """Return the reason why there can be no namespaces here; "" when they work."""
    if sys.platform != "linux" or shutil.which("ip") is None:
        return "network namespaces need Linux and the program ip of iproute2"
    if os.geteuid() != 0:
        return "network namespaces need root"
    try:
        with Network(["a", "b"]) as network:
            network.cut(["a"], ["b"])
    except (OSError, subprocess.CalledProcessError) as error:
        detail = getattr(error, "stderr", "") or str(error)
        return f"this machine admits no network namespaces: {detail.strip()}"
    return ""


class Network:
    """Hosts with one address each, chosen or given. Use as a context manager."""

    def __init__(self, hosts: Iterable[str], addresses: Mapping[str, str] | None = None) -> None:
        self.hosts = [TEST, *hosts]
        self._addresses = dict(addresses or {})
        self._prefix = f"gantry{os.getpid()}x{next(_numbers)}"
        self._router = f"{self._prefix}-router"
        self._cuts: list[tuple[str, str]] = []
        self._undo = ExitStack()

    def address(self, host: str) -> str:
        """The address of a host."""
        return self._addresses.get(host) or f"10.77.{self.hosts.index(host)}.2"

    def command(self, host: str) -> list[str]:
        """The words in front of a command line that runs on a host."""
        return ["ip", "netns", "exec", self._namespace(host)]

    def cut(self, sources: Iterable[str], targets: Iterable[str]) -> None:
        """Lose all packets from each source to each target; the other direction stays."""
        for pair in itertools.product(sources, targets):
            self._cuts.append(pair)
            self._rule("add", *pair)

    def heal(self) -> None:
        """End all cuts."""
        while self._cuts:
            self._rule("del", *self._cuts[-1])
            self._cuts.pop()

    def _rule(self, verb: str, source: str, target: str) -> None:
        ends = ["from", self.address(source), "to", self.address(target)]
        _ip("-n", self._router, "rule", verb, *ends, "blackhole")

    def _namespace(self, host: str) -> str:
        return f"{self._prefix}-{host}"

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            for name in (self._router, *map(self._namespace, self.hosts)):
                _ip("netns", "add", name)
                undo.callback(_ip, "netns", "del", name)
            for number, host in enumerate(self.hosts):
                self._connect(number, host)
            forward = ["sysctl", "-qw", "net.ipv4.ip_forward=1"]
            _run("ip", "netns", "exec", self._router, *forward)
            own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            undo.callback(os.close, own)
            undo.callback(_enter, own)
            there = os.open(f"/run/netns/{self._namespace(TEST)}", os.O_RDONLY | os.O_CLOEXEC)
            undo.callback(os.close, there)
            _enter(there)
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._undo.close()

    def _connect(self, number: int, host: str) -> None:
        """Connect a host with the router; all devices are in their namespaces from the begin on."""
        port, router, namespace = f"port{number}", self._router, self._namespace(host)
        gateway, address = f"10.77.{number}.1", self.address(host)
        peer = ["peer", "name", "eth0", "netns", namespace]
        _ip("-n", router, "link", "add", port, "type", "veth", *peer)
        _ip("-n", router, "addr", "add", f"{gateway}/32", "dev", port)
        _ip("-n", router, "link", "set", port, "up")
        _ip("-n", router, "route", "add", f"{address}/32", "dev", port)
        _ip("-n", namespace, "addr", "add", f"{address}/32", "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", namespace, "link", "set", device, "up")
        _ip("-n", namespace, "route", "add", "default", "via", gateway, "dev", "eth0", "onlink")


def _enter(namespace: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(namespace, _CLONE_NEWNET):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def _ip(*words: str) -> None:
    _run("ip", *words)


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True)

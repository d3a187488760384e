"""The members of the controllers' group: `n0-host:port;n1-host:port`, as in RocketMQ.

A member's id ends in a number, which is its number in the Raft group, less one. Brokers and
administration connect to the port of the peer; Raft has a port of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from core_broker.config.controller_keys import ControllerKeys
from core_broker.config.peer_list import PeerAddress, parse_peers
from core_broker.errors import SettingProblem, SettingsError

#: Raft's port of a peer whose Raft address is not configured, above the port of the peer.
RAFT_PORT_OFFSET = 1


@dataclass(frozen=True, slots=True)
class Peer:
    """One controller of the group."""

    #: The id of the settings, for example n0.
    name: str
    host: str
    port: int
    raft_host: str
    raft_port: int

    @property
    def address(self) -> str:
        """The address for brokers and administration."""
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Peers:
    """All controllers of the group by the number of their Raft node, and which is this one."""

    group: str
    self_number: int
    by_number: Mapping[int, Peer]

    @property
    def own(self) -> Peer:
        """This controller."""
        return self.by_number[self.self_number]

    @property
    def text(self) -> str:
        """The peers as code 1005 tells them."""
        return "".join(f"{peer.name}:{peer.address};" for peer in self.by_number.values())


def peers_of(config: ControllerKeys) -> Peers:
    """Return the peers of the settings; raises SettingsError with every problem."""
    problems: list[SettingProblem] = []
    services = _addresses("controllerDLegerPeers", config.controller_d_leger_peers, problems)
    rafts = _addresses("controllerRaftPeers", config.controller_raft_peers, problems)
    if config.controller_raft_peers and rafts.keys() != services.keys():
        expected = "the ids of controllerDLegerPeers"
        problems.append(
            SettingProblem("controllerRaftPeers", expected, config.controller_raft_peers)
        )
    self_id = config.controller_d_leger_self_id
    numbers = {name: number for number, (name, _, _) in services.items()}
    if self_id not in numbers:
        expected = "an id of controllerDLegerPeers"
        problems.append(SettingProblem("controllerDLegerSelfId", expected, self_id))
    if problems:
        raise SettingsError(problems)
    by_number = {
        number: Peer(name, host, port, *_raft_address(host, port, rafts.get(number)))
        for number, (name, host, port) in sorted(services.items())
    }
    return Peers(config.controller_d_leger_group, numbers[self_id], by_number)


def _addresses(key: str, text: str, problems: list[SettingProblem]) -> dict[int, PeerAddress]:
    """Return the members of a list by the numbers of their Raft nodes, which begin with 1."""
    return {number + 1: peer for number, peer in parse_peers(key, text, problems).items()}


def _raft_address(host: str, port: int, raft: PeerAddress | None) -> tuple[str, int]:
    return (host, port + RAFT_PORT_OFFSET) if raft is None else (raft.host, raft.port)

"""The members of a broker's DLedger group, from its settings."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from core_broker.config import BrokerConfig
from core_broker.config.peer_list import PeerAddress, parse_peers
from core_broker.errors import SettingProblem, SettingsError

_PEERS = "dLegerPeers"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Group:
    """A group and its member in this process."""

    name: str
    self_id: str
    #: The number in the own id; the broker id of a follower is one more.
    number: int
    members: Mapping[str, PeerAddress]
    #: preferredLeaderId: members to which another leader hands over; empty without a preference.
    preferred: tuple[str, ...] = ()

    @property
    def own(self) -> PeerAddress:
        """The address of this member; its port listens."""
        return self.members[self.self_id]

    def address(self, member: str) -> str:
        """Return host:port of a member."""
        peer = self.members[member]
        return f"{peer.host}:{peer.port}"


def group_of(config: BrokerConfig) -> Group:
    """Return the group of the settings; raises SettingsError with every problem.

    As in DLedger, an id of preferredLeaderId that no member has changes nothing: it may be that of
    a member that left the group.
    """
    problems: list[SettingProblem] = []
    by_number = parse_peers(_PEERS, config.d_leger_peers, problems)
    if not by_number and not problems:
        problems.append(SettingProblem(_PEERS, "n0-host:port;n1-host:port;n2-host:port", ""))
    numbers = {peer.name: number for number, peer in by_number.items()}
    self_id = config.d_leger_self_id
    if self_id not in numbers and not problems:
        problems.append(SettingProblem("dLegerSelfId", "an id of dLegerPeers", self_id))
    if "," in config.store_path_d_ledger_commit_log:
        expected = "one folder: several ones, separated by comma, are not available here"
        value = config.store_path_d_ledger_commit_log
        problems.append(SettingProblem("storePathDLedgerCommitLog", expected, value))
    if config.enable_controller_mode:
        expected = "false: a broker has a DLedger commit log or follows controllers"
        problems.append(SettingProblem("enableControllerMode", expected, "true"))
    if problems:
        raise SettingsError(problems)
    members = {peer.name: peer for peer in by_number.values()}
    wanted = [part for part in config.preferred_leader_id.split(";") if part]
    for unknown in (part for part in wanted if part not in members):
        log.warning("preferredLeaderId: %s is no id of dLegerPeers, and never leads", unknown)
    preferred = tuple(part for part in wanted if part in members)
    name = config.d_leger_group or config.broker_name
    return Group(name, self_id, numbers[self_id], members, preferred)

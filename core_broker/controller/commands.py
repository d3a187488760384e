"""Commands of the controllers' log, and their encoding.

    command = 1 byte version (1) + MessagePack of one tagged struct below

A command has everything that its effect depends on besides the state: liveness comes from
heartbeats, which are not in the log, so the proposer adds what it knows. A command that is
proposed or applied twice does no harm: ApplyBrokerId is recognised by its check code,
AlterSyncStateSet is fenced by two epochs, all others by the version of the broker set.
"""

import msgspec

from core_broker.controller.model import Candidate
from core_broker.errors import GantryError

#: Version of the encoding, the first byte of commands and snapshots.
ENCODING_VERSION = 1


class UnreadableState(GantryError):
    """A command or snapshot of the controllers that this version cannot read.

    The node must stop: without the command its state would differ from that of the others.
    """

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"The {what} of the controllers cannot be read: {reason}.")


class Command(msgspec.Struct, frozen=True, tag=True):
    """Base class; use the subclasses."""

    broker_name: str


class ApplyBrokerId(Command, frozen=True, tag=True):
    """Assign a broker id; the check code begins with the broker's address, behind it `;`."""

    cluster_name: str
    broker_id: int
    check_code: str


class UpdateBrokerAddress(Command, frozen=True, tag=True):
    """A registered broker has another address now."""

    broker_id: int
    address: str
    version: int


class AlterSyncStateSet(Command, frozen=True, tag=True):
    """The master names the replicas that have all acknowledged messages."""

    master_id: int
    master_epoch: int
    sync_state_set: tuple[int, ...]
    sync_state_set_epoch: int
    alive: tuple[int, ...]


class ElectMaster(Command, frozen=True, tag=True):
    """Elect a master among the candidates; `broker_id` is the asking or the designated broker.

    Without a broker id the controller itself asks: when nobody can be elected, the set has no
    master any more.
    """

    broker_id: int | None
    is_designated: bool
    candidates: tuple[Candidate, ...]
    allows_unclean: bool
    version: int


class CleanBrokerData(Command, frozen=True, tag=True):
    """Remove brokers, without ids the whole set; living ones only when `cleans_living`."""

    broker_ids: tuple[int, ...]
    cleans_living: bool
    alive: tuple[int, ...]
    version: int


AnyCommand = ApplyBrokerId | UpdateBrokerAddress | AlterSyncStateSet | ElectMaster | CleanBrokerData

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[AnyCommand] = msgspec.msgpack.Decoder(AnyCommand)


def encode_command(command: AnyCommand) -> bytes:
    """Return the bytes of a command for the log."""
    return bytes((ENCODING_VERSION,)) + _encoder.encode(command)


def decode_command(data: bytes) -> AnyCommand:
    """Return the command of an entry of the log; raises UnreadableState."""
    check_version("log", data)
    try:
        return _decoder.decode(memoryview(data)[1:])
    except (msgspec.MsgspecError, RecursionError, ValueError) as fault:
        raise UnreadableState("log", str(fault)) from None


def check_version(what: str, data: bytes) -> None:
    """Raise UnreadableState for bytes of another version."""
    if not data or data[0] != ENCODING_VERSION:
        found = data[0] if data else "none"
        raise UnreadableState(what, f"version {found}, this program reads {ENCODING_VERSION}")

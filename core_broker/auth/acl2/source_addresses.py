"""The source addresses of an entry: IPv4 or IPv6 addresses and CIDR blocks; none means all.

An IPv4-mapped IPv6 address counts as IPv4; the scope of a peer's address (`%eth0`) is ignored. Bits
behind the prefix are ignored as in RocketMQ: 10.0.0.5/8 is 10.0.0.0/8. Compatible with RocketMQ's
Environment and IPAddressUtils. Settings that list peers have the same addresses.
"""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from core_broker.errors import SettingProblem, SettingsError

Peer = IPv4Address | IPv6Address


def peer_address(text: str) -> Peer | None:
    """Return the address of a peer; None for a text that is no IP address."""
    try:
        return _unmapped(ip_address(text.strip("[]").partition("%")[0]))
    except ValueError:
        return None


class SourceAddresses:
    """Parsed source addresses; equal for equal texts."""

    __slots__ = ("_networks", "texts")

    def __init__(self, texts: Sequence[str] = ()) -> None:
        """Parse the texts. Raises ValueError for a text that is no address and no CIDR block."""
        self.texts = tuple(texts)
        self._networks = tuple(_network(text) for text in texts)

    def has(self, peer: Peer | None) -> bool:
        """Whether requests of the peer match; None, an unknown address, matches only all."""
        if not self._networks:
            return True
        return peer is not None and any(peer in network for network in self._networks)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SourceAddresses) and self.texts == other.texts

    def __hash__(self) -> int:
        return hash(self.texts)


def listed_addresses(key: str, text: str) -> SourceAddresses:
    """Return the addresses of a setting, separated by ";"; raises SettingsError."""
    try:
        return SourceAddresses([part.strip() for part in text.split(";") if part.strip()])
    except ValueError as error:
        expected = f"expected addresses and CIDR blocks, separated by ; ({error})"
        raise SettingsError([SettingProblem(key, expected, text)]) from None


def _network(text: str) -> IPv4Network | IPv6Network:
    address, slash, bits = text.partition("/")
    if slash and not (bits.isascii() and bits.isdigit()):
        raise ValueError(f"{text!r} has no number of bits behind the slash")
    if "%" in address:
        raise ValueError(f"{text!r} has a scope")
    network = ip_network(text, strict=False)
    if isinstance(network, IPv6Network) and network.prefixlen >= 96:
        mapped = network.network_address.ipv4_mapped
        if mapped is not None:
            return IPv4Network((mapped, network.prefixlen - 96))
    return network


def _unmapped(address: Peer) -> Peer:
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address

"""Address patterns of white lists (`globalWhiteRemoteAddresses`, `whiteRemoteAddress`).

    (empty)                         no address
    *  *.*.*.*  *:*:*:*:*:*:*:*     all addresses
    10.0.0.{1,2}  1050::5:{1,2}     the last part enumerated
    10.0.0.1,10.0.0.2               complete addresses
    10.0.0.*  10.*.*.*  10.0.1-20.* IPv4 range; the first wildcard part decides
    1050::5:*  2::5:1-ff:*  5:7:6:* IPv6 range of the last groups, hexadecimal
    10.0.0.1  ::1                   one address
    10.0.0.0/8  fd00::/8            CIDR block, an extension of Gantry

Each pattern means what the pattern means in RocketMQ 4.9.8 (`RemoteAddressStrategyFactory`).
RocketMQ also accepts `10.300.*.*`, a pattern without a match, and `*.1.2.3`, which fails every
request; Gantry refuses both. An IPv4-mapped IPv6 address counts as IPv4. Pure.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final, NamedTuple

from core_broker.auth.acl1.faults import RulesError

#: Patterns that match every address.
ALL_ADDRESSES: Final = frozenset({"*", "*.*.*.*", "*:*:*:*:*:*:*:*"})
#: Maximum length of one pattern, characters.
PATTERN_LENGTH_MAX: Final = 4_096
_IPV4_PARTS = 4
_IPV4_PART_BITS = 8
_IPV6_GROUPS = 8
_IPV6_GROUP_BITS = 16
_IPV6_GROUP_DIGITS = 4
#: Bits of a range of addresses above which a start warns: more than a /16 of IPv4.
_WIDE_BITS: Final = {4: 16, 6: 80}


class Address(NamedTuple):
    """An IP address as numbers; IPv4-mapped IPv6 addresses have version 4."""

    version: int
    number: int


class AddressRange(NamedTuple):
    """The addresses of one IP version from `first` to `last`, both included."""

    version: int
    first: int
    last: int


@dataclass(frozen=True)
class AddressPattern:
    """A parsed pattern: its text and its address ranges."""

    text: str
    ranges: tuple[AddressRange, ...]

    def matches(self, address: Address | None) -> bool:
        """Whether the pattern allows the address; None, an unreadable address, matches nothing."""
        if address is None:
            return False
        version, number = address
        return any(kind == version and first <= number <= last for kind, first, last in self.ranges)

    @cached_property
    def is_wide(self) -> bool:
        """Whether a range has more than 65,536 IPv4 addresses, or more than a /48 of IPv6."""
        return any(last - first >= 1 << _WIDE_BITS[kind] for kind, first, last in self.ranges)


def peer_address(host: str) -> Address | None:
    """The address of a peer's host text; brackets and `%scope` are ignored.

    None for a text that is no IP address; no pattern matches None.
    """
    try:
        return _number(ip_address(host.strip("[]").partition("%")[0]))
    except ValueError:
        return None


def parse_pattern(text: str) -> AddressPattern:
    """Parse one pattern. Raises RulesError with the reason."""
    pattern = text.strip()
    if len(pattern) > PATTERN_LENGTH_MAX:
        raise RulesError(f"An address pattern has more than {PATTERN_LENGTH_MAX} characters.")
    try:
        return AddressPattern(pattern, tuple(_ranges(pattern)))
    except ValueError as error:
        raise RulesError(f"Address pattern {pattern!r} is not valid: {error}") from None


def matching_pattern(
    patterns: Iterable[AddressPattern], address: Address | None
) -> AddressPattern | None:
    """The first pattern that matches the address."""
    return next((pattern for pattern in patterns if pattern.matches(address)), None)


def _ranges(pattern: str) -> Iterator[AddressRange]:
    if not pattern:
        return
    if pattern in ALL_ADDRESSES:
        yield AddressRange(4, 0, 2**32 - 1)
        yield AddressRange(6, 0, 2**128 - 1)
    elif "/" in pattern:
        yield _block(pattern)
    elif "{" in pattern or "}" in pattern:
        yield from map(_single, _enumerated(pattern))
    elif "," in pattern:
        yield from map(_single, pattern.split(","))
    elif "*" in pattern or "-" in pattern:
        yield _ipv6_range(pattern) if ":" in pattern else _ipv4_range(pattern)
    else:
        yield _single(pattern)


def _number(address: IPv4Address | IPv6Address) -> Address:
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return Address(address.version, int(address))


def _single(text: str) -> AddressRange:
    if "%" in text:
        raise ValueError("an address with a scope cannot be listed")
    try:
        version, number = _number(ip_address(text))
    except ValueError:
        raise ValueError(f"{text!r} is no IPv4 or IPv6 address") from None
    return AddressRange(version, number, number)


def _block(text: str) -> AddressRange:
    try:
        network = ip_network(text)
    except ValueError as error:
        raise ValueError(f"no CIDR block ({error})") from None
    return AddressRange(network.version, int(network[0]), int(network[-1]))


def _enumerated(text: str) -> Iterator[str]:
    """The complete addresses of `prefix{a,b,c}`."""
    prefix, _, rest = text.partition("{")
    if not rest.endswith("}") or not prefix.endswith((".", ":")):
        raise ValueError("braces list the last part, as in 10.0.0.{1,2}")
    for item in rest[:-1].split(","):
        yield prefix + item


def _ipv4_range(text: str) -> AddressRange:
    parts = text.split(".")
    if len(parts) != _IPV4_PARTS:
        raise ValueError("an IPv4 range has 4 parts, as in 10.0.0.*")
    number = 0
    for index, part in enumerate(parts):
        free_bits = _IPV4_PART_BITS * (_IPV4_PARTS - 1 - index)
        if part == "*" or "-" in part:
            if index == 0:
                raise ValueError("the first part of an IPv4 range is a number")
            for later in parts[index + 1 :]:
                if later != "*" and "-" not in later:
                    _decimal(later)
            first, last = (0, 255) if part == "*" else _bounds(part, _decimal)
            return _span(4, number, first, last, _IPV4_PART_BITS, free_bits)
        number = number << _IPV4_PART_BITS | _decimal(part)
    raise ValueError("no part is * or a range")


def _ipv6_range(text: str) -> AddressRange:
    """The range of `groups:*`, `groups:low-high` or `groups:low-high:*`."""
    head, _, last_group = text.rpartition(":")
    fixed_max = _IPV6_GROUPS - 1
    if last_group == "*" and "-" in head:
        head, _, last_group = head.rpartition(":")
        fixed_max -= 1
    if "*" in head or "-" in head or not head:
        raise ValueError("* and the range are the last groups of an IPv6 range")
    groups = _groups(head, fixed_max)
    number = 0
    for group in groups:
        number = number << _IPV6_GROUP_BITS | group
    first, last = (0, 0xFFFF) if last_group == "*" else _bounds(last_group, _hexadecimal)
    free_bits = _IPV6_GROUP_BITS * (_IPV6_GROUPS - 1 - len(groups))
    return _span(6, number, first, last, _IPV6_GROUP_BITS, free_bits)


def _groups(head: str, count_max: int) -> list[int]:
    """The fixed groups before the range; `::` fills them up to `count_max`."""
    if head.endswith(":"):  # 1050::* has `1050:` here
        head += ":"
    left, gap, right = head.partition("::")
    before = [_hexadecimal(group) for group in left.split(":")] if left else []
    after = [_hexadecimal(group) for group in right.split(":")] if right else []
    missing = count_max - len(before) - len(after)
    if missing < (1 if gap else 0):
        raise ValueError(f"more than {count_max} groups before the range")
    return [*before, *([0] * missing if gap else []), *after]


def _span(
    version: int, prefix: int, first: int, last: int, part_bits: int, free_bits: int
) -> AddressRange:
    base = prefix << part_bits
    return AddressRange(version, (base | first) << free_bits, ((base | last) + 1 << free_bits) - 1)


def _bounds(part: str, number: Callable[[str], int]) -> tuple[int, int]:
    low, _, high = part.partition("-")
    first, last = number(low), number(high)
    if first > last:
        raise ValueError(f"the range {part!r} is empty")
    if last == 0:
        raise ValueError(f"the range {part!r} has only 0; RocketMQ fails every request")
    return first, last


def _decimal(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and int(text) <= 255):
        raise ValueError(f"{text!r} is no number from 0 to 255")
    return int(text)


def _hexadecimal(text: str) -> int:
    digits = set(text)
    if not (text and len(text) <= _IPV6_GROUP_DIGITS and digits <= set("0123456789abcdefABCDEF")):
        raise ValueError(f"{text!r} is no group of 1 to {_IPV6_GROUP_DIGITS} hexadecimal digits")
    return int(text, 16)

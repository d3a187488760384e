"""Internet addresses as 4 or 16 bytes, as in records and message ids."""

from functools import lru_cache
from ipaddress import ip_address

_CACHED = 4096


@lru_cache(_CACHED)
def packed_address(ip: str) -> bytes:
    """The bytes of an address, network order."""
    return ip_address(ip).packed


@lru_cache(_CACHED)
def address_text(address: bytes) -> str:
    """The text of an address of 4 or 16 bytes."""
    return str(ip_address(address))

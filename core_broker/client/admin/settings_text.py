"""Settings in the body of codes 25, 26, 318 and 319: Java properties text."""

from collections.abc import Mapping

from core_broker.config.property_files import parse_properties
from core_broker.errors import ClientError


def read_settings(body: bytes) -> dict[str, str]:
    return {entry.key: entry.value for entry in parse_properties(body.decode("utf-8", "replace"))}


def write_settings(settings: Mapping[str, str]) -> bytes:
    """Write settings; raises ClientError for keys and values changed by reading them back."""
    lines = []
    for key, value in settings.items():
        if not key or any(character in key for character in "=: \t\r\n\\#!"):
            raise ClientError(f"The settings key {key!r} is empty or contains a separator.")
        if any(character in value for character in "\r\n"):
            raise ClientError(f"The value of {key} contains a line break.")
        escaped = value.replace("\\", "\\\\")
        lines.append(f"{key}={escaped}\n")
    return "".join(lines).encode()

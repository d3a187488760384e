"""The exceptions that a program with the client library meets; see `core_broker.errors`."""

from core_broker.errors import (
    ClientError,
    ConnectFailed,
    ConnectionClosed,
    FilterSyntaxError,
    GantryError,
    ProtocolError,
    RequestRefused,
    RequestTimeout,
    SettingsError,
    TransportError,
)

__all__ = [
    "ClientError",
    "ConnectFailed",
    "ConnectionClosed",
    "FilterSyntaxError",
    "GantryError",
    "ProtocolError",
    "RequestRefused",
    "RequestTimeout",
    "SettingsError",
    "TransportError",
]

"""Decides which peers may replicate: the replication protocol has no signatures.

A slave reads every message of the broker, and its acknowledgements count for SYNC_MASTER.
`haAllowedAddresses` lists addresses and CIDR blocks, separated by ";". The empty list allows all
peers, as RocketMQ does; with access control (aclEnable or authenticationEnabled) or with TLS
enforced, the empty list allows peers on the same machine only, unless every slave must have a
certificate (haTlsNeedClientAuth, or tls.server.need.client.auth).
"""

from collections.abc import Iterator

from core_broker.auth.acl2.source_addresses import SourceAddresses, listed_addresses, peer_address
from core_broker.config import BrokerConfig
from core_broker.config.addresses import local_address

_LOOPBACK = ("127.0.0.0/8", "::1")


def allowed_addresses(config: BrokerConfig) -> SourceAddresses:
    """Return the addresses of `haAllowedAddresses`. Raises SettingsError for an invalid list."""
    listed = listed_addresses("haAllowedAddresses", config.ha_allowed_addresses)
    is_enforced = config.tls_server_mode == "enforcing"
    is_guarded = config.acl_enable or config.authentication_enabled or is_enforced
    is_certified = config.ha_tls_need_client_auth or (
        is_enforced and config.tls_server_need_client_auth == "require"
    )
    if not listed.texts and is_guarded and not is_certified:
        return SourceAddresses((*_LOOPBACK, *_own_addresses(config)))
    return listed


def _own_addresses(config: BrokerConfig) -> Iterator[str]:
    """Yield the addresses from which this machine connects to its own port.

    Not brokerIP2, which may be the address of a router that other machines share.
    """
    yield local_address()
    bound = peer_address(config.ha_bind_address or config.bind_address)
    if bound is not None and not bound.is_unspecified:
        yield str(bound)


def refusal(addresses: SourceAddresses, host: str) -> str:
    """Return why a peer with this address may not replicate, or ""."""
    if addresses.has(peer_address(host)):
        return ""
    return "the address is not allowed to replicate; see haAllowedAddresses"

"""Decides which peers may replicate: the replication port has neither signatures nor TLS.

A slave reads every message of the broker, and its acknowledgements count for SYNC_MASTER.
`haAllowedAddresses` lists addresses and CIDR blocks, separated by ";". The empty list allows all
peers, as RocketMQ does; with access control (aclEnable or authenticationEnabled) or with TLS
enforced, the empty list allows peers of the loopback interface only.
"""

from core_broker.auth.acl2.source_addresses import SourceAddresses, peer_address
from core_broker.config import BrokerConfig
from core_broker.errors import SettingProblem, SettingsError

_LOOPBACK = ("127.0.0.0/8", "::1")


def allowed_addresses(config: BrokerConfig) -> SourceAddresses:
    """Return the addresses of `haAllowedAddresses`. Raises SettingsError for an invalid list."""
    text = config.ha_allowed_addresses
    parts = [part.strip() for part in text.split(";") if part.strip()]
    is_guarded = (
        config.acl_enable or config.authentication_enabled or config.tls_server_mode == "enforcing"
    )
    if not parts and is_guarded:
        return SourceAddresses(_LOOPBACK)
    try:
        return SourceAddresses(parts)
    except ValueError as error:
        expected = f"expected addresses and CIDR blocks, separated by ; ({error})"
        raise SettingsError([SettingProblem("haAllowedAddresses", expected, text)]) from None


def is_allowed(addresses: SourceAddresses, host: str) -> bool:
    """Whether a peer with this address may replicate."""
    return addresses.has(peer_address(host))

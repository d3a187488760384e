"""Who may replicate: haAllowedAddresses, and its default with access control."""

from pathlib import Path
from typing import Any

import pytest

from core_broker.config.addresses import local_address
from core_broker.errors import SettingsError
from core_broker.ha.admission import allowed_addresses, refusal
from tests.support.stores import store_config


def allows(tmp_path: Path, host: str, **settings: Any) -> bool:
    return not refusal(allowed_addresses(store_config(tmp_path, **settings)), host)


def test_everybody_as_in_rocketmq_without_access_control(tmp_path: Path) -> None:
    assert allows(tmp_path, "203.0.113.9")


@pytest.mark.parametrize(
    "settings",
    [{"acl_enable": True}, {"authentication_enabled": True}, {"tls_server_mode": "enforcing"}],
)
def test_only_this_machine_with_access_control(tmp_path: Path, settings: dict[str, Any]) -> None:
    assert not allows(tmp_path, "10.0.0.5", **settings)
    assert allows(tmp_path, "127.0.0.1", **settings)
    assert allows(tmp_path, "::1", **settings)
    assert allows(tmp_path, "10.0.0.5", ha_allowed_addresses="10.0.0.0/8", **settings)


def test_this_machine_under_its_other_addresses(tmp_path: Path) -> None:
    """A replica connects to the address that the master has registered."""
    secured = {"authentication_enabled": True}
    assert allows(tmp_path, local_address(), **secured)
    assert allows(tmp_path, "198.51.100.7", bind_address="198.51.100.7", **secured)
    assert allows(tmp_path, "198.51.100.8", ha_bind_address="198.51.100.8", **secured)
    for bound in ("0.0.0.0", "::", "localhost"):
        assert not allows(tmp_path, "198.51.100.7", bind_address=bound, **secured)
    assert not allows(tmp_path, "198.51.100.7", broker_ip2="198.51.100.7", **secured)


def test_enforced_certificates_of_slaves_replace_the_list(tmp_path: Path) -> None:
    required = {"tls_server_need_client_auth": "require", "authentication_enabled": True}
    assert allows(tmp_path, "10.0.0.5", tls_server_mode="enforcing", **required)
    assert not allows(tmp_path, "10.0.0.5", tls_server_mode="permissive", **required)
    own = {"ha_tls_need_client_auth": True, "authentication_enabled": True}
    assert allows(tmp_path, "10.0.0.5", tls_server_mode="permissive", **own)


def test_addresses_and_blocks(tmp_path: Path) -> None:
    listed = {"ha_allowed_addresses": " 10.0.0.5 ;192.0.2.0/24; fd00::/8;"}
    assert allows(tmp_path, "10.0.0.5", **listed)
    assert allows(tmp_path, "192.0.2.77", **listed)
    assert allows(tmp_path, "fd00::1", **listed)
    assert not allows(tmp_path, "10.0.0.6", **listed)
    assert not allows(tmp_path, "127.0.0.1", **listed)
    assert not allows(tmp_path, "", **listed)


@pytest.mark.parametrize("text", ["10.0.0.5/33", "slave.example.org", "10.0.0.*"])
def test_an_invalid_list_is_a_settings_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingsError, match="haAllowedAddresses"):
        allows(tmp_path, "10.0.0.5", ha_allowed_addresses=text)

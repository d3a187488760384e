"""Addresses of receivers: private addresses in every form, and their permission."""

import pytest

from console.services.alarms.sending.http import is_allowed


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "::1",
        "169.254.169.254",
        "100.100.100.200",
        "::ffff:10.0.0.1",
        "::10.0.0.1",
        "::7f00:1",
        "2002:a00:1::",  # 6to4 of 10.0.0.1
        "64:ff9b::a9fe:a9fe",  # NAT64 of 169.254.169.254
        "64:ff9b:1::a00:1",
        "64:ff9b:1:a00:0:100:808:808",  # NAT64 of 10.0.0.1 with a prefix of 48 bits
        "64:ff9b::6464:64c8",  # NAT64 of Alibaba Cloud's metadata
        "2001:0:4136:e378:8000:63bf:f5ff:fffe",  # Teredo of 10.0.0.1
        "fe80::1%eth0",
    ],
)
def test_private_addresses_are_refused_in_every_form(address: str) -> None:
    assert not is_allowed(address, [])


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "64:ff9b::808:808"])
def test_public_addresses_are_allowed(address: str) -> None:
    assert is_allowed(address, [])


def test_permitted_networks_count_for_the_address_inside() -> None:
    assert is_allowed("64:ff9b::a00:1", ["10.0.0.0/8"])
    assert is_allowed("::1", ["::1/128"])
    assert is_allowed("64:ff9b:1::808:808", ["64:ff9b:1::/48"])
    assert not is_allowed("10.0.0.1", ["::/0"])

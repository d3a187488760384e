"""Address patterns of ACL 1.0: every form with its matches, and every refused pattern."""

import random
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.auth.acl1.addresses import matching_pattern, parse_pattern, peer_address
from core_broker.auth.acl1.faults import RulesError

#: pattern, matching hosts, other hosts
VALID = [
    ("", [], ["10.0.0.1", "::1", "x"]),
    ("  ", [], ["10.0.0.1"]),
    ("*", ["10.0.0.1", "::1"], []),
    ("*.*.*.*", ["10.0.0.1", "::1"], []),
    ("*:*:*:*:*:*:*:*", ["10.0.0.1", "::1"], []),
    ("192.168.0.*", ["192.168.0.0", "192.168.0.255"], ["192.168.1.0", "192.167.0.1", "::1"]),
    ("192.168.*.*", ["192.168.0.0", "192.168.255.255"], ["192.169.0.0"]),
    ("10.*.*.*", ["10.0.0.0", "10.255.255.255"], ["11.0.0.0", "9.255.255.255"]),
    ("10.0.0.5-20", ["10.0.0.5", "10.0.0.20"], ["10.0.0.4", "10.0.0.21"]),
    ("10.0.1-20.*", ["10.0.1.0", "10.0.20.255"], ["10.0.0.255", "10.0.21.0"]),
    ("192.100-150.*.*", ["192.100.0.0", "192.150.255.255"], ["192.99.255.255", "192.151.0.0"]),
    ("10.0.1-20.7", ["10.0.1.7", "10.0.20.8", "10.0.5.0"], ["10.0.21.7"]),
    ("10.0.0.{1,2,3}", ["10.0.0.1", "10.0.0.3"], ["10.0.0.4", "10.0.0.0"]),
    ("10.0.0.{7}", ["10.0.0.7"], ["10.0.0.8"]),
    ("10.0.0.1,10.0.0.2", ["10.0.0.1", "10.0.0.2"], ["10.0.0.3"]),
    ("10.0.0.1,::1", ["10.0.0.1", "::1"], ["10.0.0.3"]),
    ("10.0.0.1", ["10.0.0.1", "::ffff:10.0.0.1", "::FFFF:a00:1"], ["10.0.0.2"]),
    ("::ffff:10.0.0.1", ["10.0.0.1"], ["::1"]),
    ("::1", ["::1", "[::1]", "0:0:0:0:0:0:0:1"], ["::2", "0.0.0.1"]),
    (
        "1050::5:600:300c:326b",
        ["1050:0:0:0:5:600:300C:326B", "1050::5:600:300c:326b%eth0"],
        ["1050::5:600:300c:326c"],
    ),
    (
        "1050::5:600:300c:*",
        ["1050::5:600:300c:0", "1050::5:600:300c:ffff"],
        ["1050::5:600:300d:0", "1050::1:5:600:300c:0"],
    ),
    (
        "1050::5:600:300c:1-200",
        ["1050::5:600:300c:1", "1050::5:600:300c:200"],
        ["1050::5:600:300c:0", "1050::5:600:300c:201"],
    ),
    (
        "2::ac5:78:1-200:*",
        ["2::ac5:78:1:0", "2::ac5:78:200:ffff"],
        ["2::ac5:78:0:ffff", "2::ac5:78:201:0"],
    ),
    ("5:7:6:*", ["5:7:6::", "5:7:6:ffff:ffff:ffff:ffff:ffff"], ["5:7:7::", "5:7:5:ffff::"]),
    ("1050::*", ["1050::", "1050::ffff"], ["1050::1:0"]),
    ("1050::5:{1,2,3}", ["1050::5:1", "1050::5:3"], ["1050::5:4"]),
    # CIDR blocks are an extension.
    ("10.0.0.0/8", ["10.0.0.0", "10.255.255.255"], ["11.0.0.0", "::a00:1"]),
    ("fd00::/8", ["fd00::1", "fdff::"], ["fe00::", "10.0.0.1"]),
    (" 10.0.0.1 ", ["10.0.0.1"], ["10.0.0.2"]),
]
REFUSED = [
    *("localhost", "256.0.0.1", "::1ggg", "192.168.*", "192.*", "192.168.{1}", "{10.0.0.1}"),
    *("10.0.0.1,2,3}", "10.0.0.5-2", "10.0.0.0-256", "10.0.0.-1-5", "10.0.0.*,10.0.1.1"),
    *("10.0.0.1, 10.0.0.2", "300.1.*.*", "10.300.*.*", "300.*.*.*", "*.1.2.3", "1-2.3.4.5"),
    *("10.0.0.0-0", "a.b.*.*", "10.*.x.*", "10.0.0.{1, 2}", "10.0.0.{}", "10.0.0.{1,2}x"),
    *("10.0.0.1,", ",", "10.0.0", "10.0.0.1.2", "10.0.0.*.", "10.0.0.1/33", "10.0.0.1/8", "/8"),
    *("*:1", ":*", "1050::5:*:*", "1-2::5", "1:2:3:4:5:6:7:8:*", "1::2:3:4:5:6:7:8:*", "5:g:*"),
    *("1050::5:2-1", "1050::5:0-0", "1050::5:1-10000", "1::2::3:*", "fe80::1%eth0", "::5-1-2"),
    *(
        "010.0.0.1",
        "\u0661\u0660.0.0.*",
        "10.0.0.1-\u0662",
        "1" * 5_000,
        "*,10.0.0.1",
        "\0",
        "10.0.0.5-",
    ),
]


@pytest.mark.parametrize(("pattern", "inside", "outside"), VALID)
def test_a_pattern_matches_as_in_rocketmq(
    pattern: str, inside: list[str], outside: list[str]
) -> None:
    parsed = parse_pattern(pattern)
    for host in inside:
        assert parsed.matches(peer_address(host)), host
    for host in outside:
        assert not parsed.matches(peer_address(host)), host


@pytest.mark.parametrize("pattern", REFUSED)
def test_other_patterns_are_refused_with_a_reason(pattern: str) -> None:
    with pytest.raises(RulesError) as refused:
        parse_pattern(pattern)
    assert "ddress pattern" in str(refused.value)


@pytest.mark.parametrize("host", ["", "x", "10.0.0", "10.0.0.1:80", "::g", "[", "%"])
def test_a_peer_without_an_ip_address_matches_nothing(host: str) -> None:
    assert peer_address(host) is None
    assert not parse_pattern("*").matches(None)


@given(st.text(alphabet="0123456789abf.:*-{},/ ", max_size=24))
def test_no_text_crashes_the_parser(text: str) -> None:
    try:
        pattern = parse_pattern(text)
    except RulesError:
        return
    assert all(first <= last for _, first, last in pattern.ranges)


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_ipv4_ranges_agree_with_a_comparison_of_parts(number: int, base: int) -> None:
    parts = [int(part) for part in str(IPv4Address(base)).split(".")]
    index = random.Random(base).randint(1, 3)
    low, high = sorted((parts[index], random.Random(number).randint(1, 255)))
    high = high or 1
    texts = [*map(str, parts[:index]), f"{low}-{high}", *["*"] * (3 - index)]
    actual = [int(part) for part in str(IPv4Address(number)).split(".")]
    expected = actual[:index] == parts[:index] and low <= actual[index] <= high
    pattern = parse_pattern(".".join(texts))
    assert pattern.matches(peer_address(str(IPv4Address(number)))) is expected
    # An address inside of the prefix, too.
    near = [*parts[:index], *actual[index:]]
    text = ".".join(map(str, near))
    assert pattern.matches(peer_address(text)) is (low <= near[index] <= high)


@given(st.integers(0, 2**128 - 1))
def test_ipv6_texts_are_compared_by_value(number: int) -> None:
    address = IPv6Address(number)
    for text in (address.compressed, address.exploded.upper()):
        assert parse_pattern(text).matches(peer_address(address.exploded))
        assert parse_pattern(text).matches(peer_address(f"[{address.compressed}]"))


def test_the_first_matching_pattern_is_named() -> None:
    patterns = [parse_pattern(text) for text in ("10.0.0.1", "10.0.0.*", "*")]
    found = matching_pattern(patterns, peer_address("10.0.0.7"))
    assert found is not None
    assert found.text == "10.0.0.*"
    assert matching_pattern(patterns[:1], peer_address("10.0.0.7")) is None


@pytest.mark.parametrize(
    ("pattern", "is_wide"),
    [("*", True), ("10.*.*.*", True), ("10.0.*.*", False), ("fd00::/8", True), ("::1", False)],
)
def test_wide_patterns_are_known(pattern: str, is_wide: bool) -> None:
    assert parse_pattern(pattern).is_wide is is_wide

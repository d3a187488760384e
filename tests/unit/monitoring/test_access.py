"""Readers of /metrics and /varz: this machine, or a token."""

from pathlib import Path

import pytest

from core_broker.monitoring.access import MetricsAccess, UnusableToken, read_token

TOKEN = b"0123456789abcdef"
OPEN = MetricsAccess("metricsTokenFile")
CLOSED = MetricsAccess("metricsTokenFile", TOKEN)


@pytest.mark.parametrize(
    ("peer", "own", "headers", "allowed"),
    [
        ("127.0.0.1", "127.0.0.1", {"host": "127.0.0.1:5559"}, True),
        ("127.0.0.1", "127.0.0.1", {"host": "localhost:5559"}, True),
        ("127.0.0.1", "127.0.0.1", {}, True),
        ("127.8.0.1", "127.0.0.1", {}, True),
        ("::1", "::1", {"host": "[::1]:5559"}, True),
        ("::ffff:127.0.0.1", "::ffff:127.0.0.1", {}, True),
        ("192.0.2.1", "192.0.2.1", {"host": "192.0.2.1:5559"}, True),
        ("192.0.2.2", "192.0.2.1", {"host": "192.0.2.1:5559"}, False),
        ("192.0.2.2", "192.0.2.1", {"host": "127.0.0.1"}, False),
        ("127.0.0.1", "127.0.0.1", {"host": "rebound.example:5559"}, False),
        ("127.0.0.1", "127.0.0.1", {"host": "[::1"}, True),
        ("127.0.0.1", "127.0.0.1", {"x-forwarded-for": "192.0.2.9"}, False),
        ("127.0.0.1", "127.0.0.1", {"forwarded": "for=192.0.2.9"}, False),
        ("", "", {}, False),
        ("not an address", "not an address", {}, False),
    ],
)
def test_without_a_token_this_machine_reads(
    peer: str, own: str, headers: dict[str, str], allowed: bool
) -> None:
    why = OPEN.why_denied(peer, own, headers)
    assert (why == "") is allowed
    assert allowed or "metricsTokenFile" in why


@pytest.mark.parametrize(
    ("sent", "allowed"),
    [
        ("Bearer 0123456789abcdef", True),
        ("bearer  0123456789abcdef ", True),
        ("Bearer 0123456789abcdeX", False),
        ("Bearer 0123456789abcdef0", False),
        ("Bearer", False),
        ("Basic 0123456789abcdef", False),
        ("Bearer \xe9", False),
        ("", False),
    ],
)
@pytest.mark.parametrize("peer", ["127.0.0.1", "192.0.2.2"])
def test_with_a_token_every_reader_sends_the_token(peer: str, sent: str, allowed: bool) -> None:
    why = CLOSED.why_denied(peer, "127.0.0.1", {"authorization": sent} if sent else {})
    assert (why == "") is allowed
    assert TOKEN.decode() not in why


def test_a_token_may_have_any_bytes() -> None:
    token = "schlüssel-0123456789".encode()
    access = MetricsAccess("metricsTokenFile", token)
    for sent, allowed in ((token.decode("latin-1"), True), (token.decode(), False)):
        why = access.why_denied("192.0.2.2", "192.0.2.1", {"authorization": f"Bearer {sent}"})
        assert (why == "") is allowed


def test_a_token_is_read_without_spaces_around(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_bytes(TOKEN + b"\n")
    assert read_token(str(file)) == TOKEN
    assert read_token("") == b""


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "No such file"), (b"", "not 0"), (b"short\n", "not 5"), (b"x" * 5000, "16 to 1024")],
)
def test_an_unusable_token_file_is_refused(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UnusableToken, match=reason):
        read_token(str(file))

"""Compressed bodies stay within bounds."""

import sys

import pytest

from core_broker.errors import ClientError, ProtocolError
from core_broker.message import sysflag
from core_broker.message.compression import compress, decompress

KINDS = [0, sysflag.COMPRESSION_ZLIB, sysflag.COMPRESSION_LZ4, sysflag.COMPRESSION_ZSTD]


@pytest.mark.parametrize("kind", KINDS)
def test_a_bomb_is_refused_at_the_limit(kind: int) -> None:
    bomb = compress(bytes(50_000_000), kind)
    with pytest.raises(ProtocolError, match="more than 1000 bytes"):
        decompress(bomb, kind, 1000)


@pytest.mark.parametrize("kind", KINDS)
def test_exactly_the_limit_is_fine(kind: int) -> None:
    body = bytes(range(250)) * 4
    assert decompress(compress(body, kind), kind, 1000) == body
    with pytest.raises(ProtocolError):
        decompress(compress(body, kind), kind, 999)


@pytest.mark.parametrize("kind", KINDS)
def test_cut_off(kind: int) -> None:
    packed = compress(bytes(range(250)) * 4, kind)
    with pytest.raises(ProtocolError):
        decompress(packed[:-5], kind)


@pytest.mark.parametrize("kind", KINDS)
def test_empty_and_tiny(kind: int) -> None:
    for body in (b"", b"x"):
        assert decompress(compress(body, kind), kind) == body


@pytest.mark.parametrize("kind", [0x400, 0x700])
def test_unknown_kind(kind: int) -> None:
    with pytest.raises(ProtocolError, match="unknown compression"):
        decompress(b"", kind)


@pytest.mark.parametrize(
    ("kind", "module", "package"),
    [
        (sysflag.COMPRESSION_LZ4, "lz4.frame", "lz4"),
        (sysflag.COMPRESSION_ZSTD, "backports", "backports-zstd"),
    ],
)
def test_a_missing_library_is_named(
    kind: int, module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ClientError, match=package):
        decompress(b"", kind)

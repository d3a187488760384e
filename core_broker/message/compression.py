"""Compressed message bodies. Clients compress and decompress; a broker passes them through.

The compression type is in the system flag: 0x000 and 0x300 zlib stream (RFC 1950), 0x100 LZ4 frame,
0x200 Zstandard frame. The decompressed size is not on the wire, so decompression has a limit.
Compatible with RocketMQ's Compressor and CompressionType.
"""

import zlib
from typing import Any

from core_broker.errors import ClientError, ProtocolError
from core_broker.limits import DECOMPRESSED_BYTES_MAX
from core_broker.message import sysflag

#: RocketMQ's default level.
COMPRESS_LEVEL = 5


def compress(
    body: bytes, kind: int = sysflag.COMPRESSION_ZLIB, level: int = COMPRESS_LEVEL
) -> bytes:
    """Compress a body; the sender also sets `kind` and the compressed bit in the system flag."""
    packed: bytes
    if kind == sysflag.COMPRESSION_LZ4:
        packed = _lz4().compress(body)
    elif kind == sysflag.COMPRESSION_ZSTD:
        packed = _zstd().compress(body, level)
    else:
        packed = zlib.compress(body, level)
    return packed


def decompress(body: bytes, sys_flag: int, limit: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """Decompress a body to at most `limit` bytes; raises ProtocolError beyond, or for bad data."""
    decompressor, faults = _decompressor(sys_flag & sysflag.COMPRESSION_MASK)
    try:
        unpacked: bytes = decompressor.decompress(body, limit + 1)
    except faults as fault:
        raise ProtocolError(f"a compressed body does not unpack: {fault}") from None
    if len(unpacked) > limit:
        raise ProtocolError(f"a compressed body unpacks to more than {limit} bytes")
    if not decompressor.eof:
        raise ProtocolError("a compressed body ends too early")
    return unpacked


def _decompressor(kind: int) -> tuple[Any, type[Exception]]:
    """Return a decompressor with a size limit, and the exception type for malformed data."""
    if kind in {0, sysflag.COMPRESSION_ZLIB}:
        return zlib.decompressobj(), zlib.error
    if kind == sysflag.COMPRESSION_LZ4:
        return _lz4().LZ4FrameDecompressor(), RuntimeError
    if kind == sysflag.COMPRESSION_ZSTD:
        zstd = _zstd()
        return zstd.ZstdDecompressor(), zstd.ZstdError
    raise ProtocolError(f"unknown compression type {kind >> 8} in the system flag")


def _lz4() -> Any:
    try:
        import lz4.frame
    except ImportError:
        raise ClientError("LZ4 bodies need lz4: pip install gantry[compression]") from None
    return lz4.frame


def _zstd() -> Any:
    try:
        from backports import zstd
    except ImportError:
        raise ClientError(
            "Zstandard bodies need backports-zstd: pip install gantry[compression]"
        ) from None
    return zstd

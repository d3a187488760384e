"""Arrays of samples: packed for files, and reduced to aggregates. Pure.

A packed array has no header: its shape and element type are the caller's.

    values -> float64 (exact) or float32 with 11 bits of mantissa
           -> bits XOR the bits of the point before, along the last axis
           -> byte planes: first the lowest byte of all elements, then the next
           -> zlib

A value that does not change becomes zeros; a noisy value costs about two bytes. NaN is a gap.
"""

import zlib
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from console.services.history.metrics import Aggregate

Values = NDArray[np.float64]

#: Compression level of arrays that stay, and of a single sample, which stays for an hour.
LEVEL: Final = 6
LEVEL_OF_FRAMES: Final = 1
#: Bits of a rounded float32's mantissa that are dropped.
DROPPED_BITS: Final = 12


class Damaged(ValueError):
    """A packed array that does not have the expected shape."""


def pack(values: Values, *, exact: bool, level: int = LEVEL) -> bytes:
    """Return the packed array."""
    bits = _bits(values, exact=exact)
    changes = bits.copy()
    changes[..., 1:] ^= bits[..., :-1]
    planes = changes.reshape(-1, 1).view(np.uint8).T
    return zlib.compress(np.ascontiguousarray(planes).tobytes(), level)


def unpack(packed: bytes, shape: tuple[int, ...], *, exact: bool) -> Values:
    """Return the array; one axis of `shape` may be -1. Raises Damaged for other contents."""
    kind = np.uint64 if exact else np.uint32
    width = np.dtype(kind).itemsize
    try:
        raw = np.frombuffer(zlib.decompress(packed), np.uint8)
        planes = raw.reshape(width, -1)
        changes = np.ascontiguousarray(planes.T).view(kind).reshape(shape)
    except (zlib.error, ValueError) as error:
        raise Damaged(str(error)) from error
    bits = np.bitwise_xor.accumulate(changes, axis=-1)
    return bits.view(np.float64 if exact else np.float32).astype(np.float64)


def _bits(values: Values, *, exact: bool) -> NDArray[np.unsignedinteger]:
    if exact:
        return np.ascontiguousarray(values, np.float64).view(np.uint64)
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    half, mask = np.uint32(1 << (DROPPED_BITS - 1)), np.uint32((1 << 32) - (1 << DROPPED_BITS))
    return np.asarray(np.where(np.isnan(values), bits, bits + half) & mask, np.uint32)


def rounded(values: Values) -> Values:
    """Return the values with the precision of packed arrays that are not exact."""
    return _bits(values, exact=False).view(np.float32).astype(np.float64)


def reduced(values: Values, size: int, kept: Sequence[Aggregate]) -> dict[Aggregate, Values]:
    """Return the aggregates of each `size` neighbours of the last axis; NaN where all are gaps."""
    parts = values.reshape(*values.shape[:-1], -1, size)
    return {name: _aggregate(parts, name) for name in kept}


def _aggregate(parts: Values, name: Aggregate) -> Values:
    if name == "min":
        return np.fmin.reduce(parts, axis=-1)
    if name == "max":
        return np.fmax.reduce(parts, axis=-1)
    known = ~np.isnan(parts)
    if name == "avg":
        counts = known.sum(axis=-1)
        sums = np.where(known, parts, 0.0).sum(axis=-1)
        means = np.full(sums.shape, np.nan)
        np.divide(sums, counts, out=means, where=counts > 0)
        return means
    newest = parts.shape[-1] - 1 - np.argmax(known[..., ::-1], axis=-1)
    return np.take_along_axis(parts, newest[..., None], axis=-1)[..., 0]


def reduced_again(kept: Mapping[Aggregate, Values], size: int) -> dict[Aggregate, Values]:
    """Return the aggregates of aggregates: the mean of means, the least minimum, and so on."""
    return {name: reduced(values, size, (name,))[name] for name, values in kept.items()}

"""The Bloom filter for the bit positions in consumerFilter.json.

RocketMQ discards a file whose bit positions do not match the settings, so Gantry computes the
positions by RocketMQ's rule: k positions in m bits from the two halves of a MurmurHash3. Compatible
with RocketMQ's BloomFilter and Guava's murmur3_128.
"""

import math
from struct import Struct

from core_broker.remoting.bodies import BloomFilterData

_MASK_64 = 2**64 - 1
_MASK_32 = 2**32 - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
_BLOCK = Struct("<QQ")


class BloomFilter:
    """Bits for `expected` names with an error rate in percent."""

    def __init__(self, error_percent: int, expected: int) -> None:
        rate = error_percent / 100
        self.hashes = math.ceil(math.log(rate) / math.log(0.5))
        bits = math.ceil(
            expected * math.log(1 / rate) / math.log(2) * math.log(math.e) / math.log(2)
        )
        self.bits = 8 * math.ceil(bits / 8)

    def data(self, name: str) -> BloomFilterData:
        """Return the positions of a name, which is group#topic."""
        hash_64 = murmur3(name.encode())
        first, second = hash_64 & _MASK_32, hash_64 >> 32
        positions = []
        for number in range(1, self.hashes + 1):
            combined = (first + number * second) & _MASK_32
            if combined >= 2**31:  # negative in Java; RocketMQ then flips all bits
                combined ^= _MASK_32
            positions.append(combined % self.bits)
        return BloomFilterData(bit_pos=positions, bit_num=self.bits)


def murmur3(data: bytes) -> int:
    """The first 64 bits of MurmurHash3 x64 128 with seed 0."""
    low = high = 0
    whole = len(data) - len(data) % _BLOCK.size
    for at in range(0, whole, _BLOCK.size):
        one, two = _BLOCK.unpack_from(data, at)
        low ^= _mixed(one, _C1, 31, _C2)
        low = (_rotated(low, 27) + high) * 5 + 0x52DCE729 & _MASK_64
        high ^= _mixed(two, _C2, 33, _C1)
        high = (_rotated(high, 31) + low) * 5 + 0x38495AB5 & _MASK_64
    if whole < len(data):
        one, two = _BLOCK.unpack(data[whole:].ljust(_BLOCK.size, b"\0"))
        high ^= _mixed(two, _C2, 33, _C1)
        low ^= _mixed(one, _C1, 31, _C2)
    low, high = low ^ len(data), high ^ len(data)
    low = low + high & _MASK_64
    high = high + low & _MASK_64
    return _finished(low) + _finished(high) & _MASK_64


def _mixed(value: int, factor: int, bits: int, second_factor: int) -> int:
    return _rotated(value * factor & _MASK_64, bits) * second_factor & _MASK_64


def _rotated(value: int, bits: int) -> int:
    value &= _MASK_64
    return (value << bits | value >> 64 - bits) & _MASK_64


def _finished(value: int) -> int:
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & _MASK_64
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & _MASK_64
    return value ^ value >> 33

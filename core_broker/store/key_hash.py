"""The hash of a message key in the index: abs(hashCode("TOPIC#KEY")), and 0 for -2^31.

Compatible with RocketMQ's IndexService.buildKey and IndexFile.indexKeyHashMethod.
"""

from array import array
from operator import mul
from struct import unpack

from core_broker.message.hashing import java_string_hash
from core_broker.message.properties import KEY_SEPARATOR, PROPERTY_KEYS, PROPERTY_UNIQ_KEY
from core_broker.store.index_items import ENTRY_NUMBERS, IndexEntries

#: Varying characters at the end of keys: for about a minute, a client's unique keys share the rest.
_VARIED = 8
#: Maximum number of cached prefix hashes; beyond the maximum the cache is cleared.
PREFIXES_MAX = 8192
#: Java's hash multiplies by 31 for each following character.
_POWERS = tuple(31**exponent for exponent in range(_VARIED - 1, -1, -1))
_SHIFT: int = 31**_VARIED
_WORD = 0xFFFFFFFF
_INT_MAX = 0x7FFFFFFF
_NUMBER_BYTES = 8


class KeyHasher:
    """Hashes keys; caches the hashes of their prefixes."""

    def __init__(self) -> None:
        self._prefixes: dict[str, int] = {}

    def key_hash(self, topic: str, key: str) -> int:
        """Return the non-negative index hash of a key of a topic."""
        return self._name_hash(f"{topic}#{key}")

    def message_hashes(self, topic: str, properties: dict[str, str]) -> list[int]:
        """Return the hashes of all keys of a message: unique key first, then KEYS."""
        return [self._name_hash(name) for name in _names(topic, properties)]

    def has_hash(self, topic: str, properties: dict[str, str], key_hash: int) -> bool:
        """Return whether a message has a key with the hash; the first such key ends the work."""
        return any(self._name_hash(name) == key_hash for name in _names(topic, properties))

    def hashes(self, names: list[str]) -> list[int]:
        """Return the hashes of many TOPIC#KEY names, at a third of the cost of `key_hash`."""
        ends = "".join([name[-_VARIED:] for name in names])
        if len(ends) < _VARIED * len(names) or not ends.isascii():
            return [self._name_hash(name) for name in names]
        known, remember = self._prefixes.get, self._remember
        seeds = [known(name[:-_VARIED]) or remember(name[:-_VARIED]) for name in names]
        sums = _sums(ends.encode(), len(names))
        return [
            code if (code := seed + each & _WORD) <= _INT_MAX else -code & _INT_MAX
            for seed, each in zip(seeds, sums, strict=True)
        ]

    def _name_hash(self, name: str) -> int:
        end = name[-_VARIED:]
        if len(end) < _VARIED or not end.isascii():
            code = java_string_hash(name) & _WORD
        else:
            seed = self._prefixes.get(name[:-_VARIED]) or self._remember(name[:-_VARIED])
            code = seed + sum(map(mul, end.encode(), _POWERS)) & _WORD
        return code if code <= _INT_MAX else -code & _INT_MAX

    def _remember(self, prefix: str) -> int:
        """Compute and cache the contribution of a prefix to the hash of a name."""
        if len(self._prefixes) >= PREFIXES_MAX:
            self._prefixes.clear()
        seed = java_string_hash(prefix) * _SHIFT & _WORD
        self._prefixes[prefix] = seed
        return seed


class KeyBatch:
    """Keys of several messages, hashed together."""

    def __init__(self, hasher: KeyHasher) -> None:
        self._hasher = hasher
        self._names: list[str] = []
        #: Offset and store time of the message, for each key.
        self._places: list[int] = []

    def add(self, topic: str, properties: dict[str, str], offset: int, stored_at: int) -> None:
        """Add all keys of a message."""
        names = _names(topic, properties)
        self._names += names
        self._places += (offset, stored_at) * len(names)

    def __bool__(self) -> bool:
        """True with at least one key."""
        return bool(self._names)

    def clear(self) -> None:
        """Remove all keys."""
        self._names, self._places = [], []

    def take(self) -> IndexEntries:
        """Return the index entries of all keys in order, and clear the batch."""
        count, places = len(self._names), self._places
        entries = array("q", bytes(_NUMBER_BYTES * ENTRY_NUMBERS * count))
        if count:
            entries[0::ENTRY_NUMBERS] = array("q", self._hasher.hashes(self._names))
            entries[1::ENTRY_NUMBERS] = array("q", places[0::2])
            entries[2::ENTRY_NUMBERS] = array("q", places[1::2])
            self.clear()
        return entries


def _names(topic: str, properties: dict[str, str]) -> list[str]:
    """Return the hashed names of a message: unique key first, then KEYS."""
    unique, keys = properties.get(PROPERTY_UNIQ_KEY), properties.get(PROPERTY_KEYS)
    names = [] if unique is None else [f"{topic}#{unique}"]
    if keys:
        if KEY_SEPARATOR in keys:
            names += [f"{topic}#{key}" for key in keys.split(KEY_SEPARATOR) if key]
        else:
            names.append(f"{topic}#{keys}")
    return names


def _sums(ends: bytes, count: int) -> tuple[int, ...]:
    """Return the contributions of all name ends to their hashes, computed as lanes of one integer.

    Each step joins neighbouring lanes, the first times 31 for each character that the other has: of
    8 characters become 4 hashes of two, then 2 of four, then 1 of eight, which has 43 bits.
    """
    lanes = int.from_bytes(ends, "little")
    for size in (1, 2, 4):
        mask = (b"\xff" * size + bytes(size)) * (len(ends) // (2 * size))
        every_second = int.from_bytes(mask, "little")
        lanes = (lanes & every_second) * 31**size + (lanes >> 8 * size & every_second)
    return unpack(f"<{count}Q", lanes.to_bytes(len(ends), "little"))

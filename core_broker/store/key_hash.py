"""The hash of a message key in the index: abs(hashCode("TOPIC#KEY")), and 0 for -2^31.

Compatible with RocketMQ's IndexService.buildKey and IndexFile.indexKeyHashMethod.
"""

from operator import mul

from core_broker.message.hashing import java_string_hash
from core_broker.message.properties import KEY_SEPARATOR, PROPERTY_KEYS, PROPERTY_UNIQ_KEY

#: A client's unique keys differ in their last characters only, for about a minute at a time.
_VARIED = 8
#: Hashes of what stands before those that are kept; then all are forgotten.
PREFIXES_MAX = 8192
#: Java's hash multiplies by 31 for each character that follows.
_POWERS = tuple(31**exponent for exponent in range(_VARIED - 1, -1, -1))
_SHIFT: int = 31**_VARIED
_WORD = 0xFFFFFFFF
_INT_MAX = 0x7FFFFFFF


class KeyHasher:
    """Hashes keys, remembering the hashes of topics and of the beginnings of keys."""

    def __init__(self) -> None:
        self._prefixes: dict[tuple[str, str], int] = {}

    def key_hash(self, topic: str, key: str) -> int:
        """Return the non-negative hash under which the index keeps a key of a topic."""
        if len(key) < _VARIED or not key.isascii():
            code = java_string_hash(f"{topic}#{key}") & _WORD
        else:
            seed = self._prefixes.get((topic, key[:-_VARIED]))
            if seed is None:
                seed = self._remember(topic, key[:-_VARIED])
            code = seed + sum(map(mul, key[-_VARIED:].encode(), _POWERS)) & _WORD
        return code if code <= _INT_MAX else -code & _INT_MAX

    def message_hashes(self, topic: str, properties: dict[str, str]) -> list[int]:
        """Return the hashes of all keys of a message: its unique key, then each of its KEYS."""
        hashes = []
        unique = properties.get(PROPERTY_UNIQ_KEY)
        if unique is not None:
            hashes.append(self.key_hash(topic, unique))
        keys = properties.get(PROPERTY_KEYS)
        if keys is not None:
            hashes += [self.key_hash(topic, key) for key in keys.split(KEY_SEPARATOR) if key]
        return hashes

    def _remember(self, topic: str, prefix: str) -> int:
        if len(self._prefixes) >= PREFIXES_MAX:
            self._prefixes.clear()
        seed = java_string_hash(f"{topic}#{prefix}") * _SHIFT & _WORD
        self._prefixes[topic, prefix] = seed
        return seed

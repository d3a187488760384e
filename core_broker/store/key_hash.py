"""The hash of a message key in the index: abs(hashCode("TOPIC#KEY")), and 0 for -2^31.

Compatible with RocketMQ's IndexService.buildKey and IndexFile.indexKeyHashMethod.
"""

from core_broker.message.hashing import java_string_hash
from core_broker.message.properties import PROPERTY_KEYS, PROPERTY_UNIQ_KEY

INT_MIN = -(2**31)
#: A client's unique keys differ in their last characters only, for about a minute at a time.
_VARIED = 8
_LONG_KEY = 16
#: Hashes of key beginnings that are kept; then all are forgotten.
PREFIXES_MAX = 8192


class KeyHasher:
    """Hashes keys, remembering the hashes of topics and of the beginnings of long keys."""

    def __init__(self) -> None:
        self._prefixes: dict[tuple[str, str], int] = {}

    def key_hash(self, topic: str, key: str) -> int:
        """Return the non-negative hash under which the index keeps a key of a topic."""
        if len(key) < _LONG_KEY:
            seed, rest = self._seed(topic, ""), key
        else:
            seed, rest = self._seed(topic, key[:-_VARIED]), key[-_VARIED:]
        code = java_string_hash(rest, seed)
        if code < 0:
            return -code if code != INT_MIN else 0
        return code

    def message_hashes(self, topic: str, properties: dict[str, str]) -> list[int]:
        """Return the hashes of all keys of a message: its unique key, then each of its KEYS."""
        hashes = []
        unique = properties.get(PROPERTY_UNIQ_KEY)
        if unique is not None:
            hashes.append(self.key_hash(topic, unique))
        keys = properties.get(PROPERTY_KEYS)
        if keys is not None:
            hashes.extend([self.key_hash(topic, each) for each in keys.split(" ") if each])
        return hashes

    def _seed(self, topic: str, prefix: str) -> int:
        seed = self._prefixes.get((topic, prefix))
        if seed is None:
            if len(self._prefixes) >= PREFIXES_MAX:
                self._prefixes.clear()
            seed = self._prefixes[topic, prefix] = java_string_hash(f"{topic}#{prefix}")
        return seed

"""Decoded answers with complete tables of brokers: equal bytes are decoded once.

A console asks for the tables of thousands of topics and groups every few seconds, and the tables
rarely change. Decoding them takes 10 ms each, in which the GIL is held; a digest takes 1 ms.
"""

from collections import OrderedDict
from hashlib import blake2b
from typing import Any, Final, TypeVar

from core_broker.remoting.bodies import decode_body
from core_broker.remoting.codes import RequestCode

T = TypeVar("T")

#: Maximum number of kept tables; those unused for longest are dropped.
TABLES_MAX: Final = 256
DIGEST_BYTES: Final = 16


class DecodedTables:
    """The last table of each broker and request code. Callers must not change a table."""

    def __init__(self, tables_max: int = TABLES_MAX) -> None:
        self._tables_max = tables_max
        self._tables: OrderedDict[tuple[str, RequestCode], tuple[bytes, Any]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._tables)

    def decoded(self, kind: type[T], addr: str, code: RequestCode, body: bytes) -> T:
        """Return the decoded body, the same object for the same bytes as in the last answer.

        Raises ProtocolError as `decode_body`.
        """
        digest = blake2b(body, digest_size=DIGEST_BYTES).digest()
        known = self._tables.get((addr, code))
        if known is None or known[0] != digest:
            known = digest, decode_body(kind, body)
            self._tables[addr, code] = known
        self._tables.move_to_end((addr, code))
        while len(self._tables) > self._tables_max:
            self._tables.popitem(last=False)
        value: T = known[1]
        return value

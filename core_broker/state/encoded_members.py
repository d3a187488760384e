"""The members of a large JSON object, encoded in chunks.

A save of a table with 100,000 entries must not encode 100,000 entries on the event loop. Entries
live in chunks of at most CHUNK_ENTRIES entries, and a change marks one chunk. `parts` encodes the
marked chunks only and returns the text of all chunks; a thread can join or write the parts.
"""

from typing import Generic, TypeVar

from core_broker.remoting.bodies import encode_body

#: Maximum entries of a chunk: the entries that one change encodes again.
CHUNK_ENTRIES = 128

T = TypeVar("T")


class _Chunk(Generic[T]):
    __slots__ = ("entries", "text")

    def __init__(self) -> None:
        self.entries: dict[str, T] = {}
        #: A comma and the encoded members; None after a change.
        self.text: bytes | None = None


class EncodedMembers(Generic[T]):
    """Entries by name, and their JSON text without the braces."""

    def __init__(self) -> None:
        self._chunks: list[_Chunk[T]] = []
        self._chunk_of: dict[str, _Chunk[T]] = {}
        #: Chunks with fewer than CHUNK_ENTRIES entries; new entries go into the last chunk.
        self._open: list[_Chunk[T]] = []
        #: Number of entries that all calls of `parts` have encoded.
        self.encoded = 0

    def put(self, name: str, entry: T) -> None:
        """Add an entry, or replace the entry with the same name."""
        chunk = self._chunk_of.get(name)
        if chunk is None:
            chunk = self._chunk_of[name] = self._open_chunk()
            if len(chunk.entries) == CHUNK_ENTRIES - 1:
                self._open.pop()
        chunk.entries[name] = entry
        chunk.text = None

    def remove(self, name: str) -> None:
        """Delete an entry of the table."""
        chunk = self._chunk_of.pop(name)
        if len(chunk.entries) == CHUNK_ENTRIES:
            self._open.append(chunk)
        del chunk.entries[name]
        chunk.text = None

    def parts(self) -> list[bytes]:
        """Return the text of the members in parts, to be joined without a separator."""
        texts = []
        for chunk in self._chunks:
            if chunk.text is None:
                self.encoded += len(chunk.entries)
                members = encode_body(chunk.entries)[1:-1]
                chunk.text = b"," + members if members else b""
            if chunk.text:
                texts.append(chunk.text)
        if texts:
            texts[0] = texts[0][1:]
        return texts

    def _open_chunk(self) -> _Chunk[T]:
        if not self._open:
            self._open.append(_Chunk())
            self._chunks.append(self._open[-1])
        return self._open[-1]

"""The tags codes of a queue that are known to be right (unit_check.py)."""

#: Maximum number of known tags codes of a queue. Codes of a queue with more codes are not checked.
KNOWN_CODES_MAX = 4096


class KnownCodes:
    """Tags codes that agreed with a record of the queue since the start."""

    __slots__ = ("_codes", "_is_every")

    def __init__(self) -> None:
        self._codes: set[int] = set()
        self._is_every = False

    def __contains__(self, code: int) -> bool:
        return self._is_every or code in self._codes

    def add(self, code: int) -> None:
        """Add a code; beyond KNOWN_CODES_MAX every code counts as known."""
        if len(self._codes) < KNOWN_CODES_MAX:
            self._codes.add(code)
        elif not self._is_every:
            self._is_every = True
            self._codes.clear()

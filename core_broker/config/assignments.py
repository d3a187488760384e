"""The assignment of a value to a key by a source, and suggestions for unknown keys."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from core_broker.errors import SettingProblem

#: Maximum number of unknown keys of one source that are compared with the known keys.
SUGGESTIONS_MAX = 10
#: Maximum length of a compared key, characters; the known keys are shorter.
SUGGESTED_KEY_CHARS_MAX = 64


@dataclass(frozen=True, slots=True)
class Assignment:
    """A key, the text of its value, and the source: a file with a line, a variable, an option."""

    key: str
    value: str
    source: str
    line: int | None = None

    @property
    def location(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}"

    def problem(self, expected: str, nearest: str = "") -> SettingProblem:
        """Return the problem to report when the value differs from `expected`."""
        return SettingProblem(
            key=self.key,
            value=self.value,
            expected=f"expected {expected}",
            source=self.source,
            line=self.line,
            nearest=nearest or None,
        )


class Suggestions:
    """Suggests a known key for each of the first unknown keys of one source.

    A comparison with every key of a broker takes about a millisecond on the event loop, so that
    the comparisons of one source are limited: SUGGESTIONS_MAX unknown keys are compared, and keys
    over SUGGESTED_KEY_CHARS_MAX are not.
    """

    def __init__(self, known: Iterable[str]) -> None:
        self._by_lower = {name.lower(): name for name in known}
        self._remaining = SUGGESTIONS_MAX

    def nearest(self, key: str) -> str:
        """Return the known key most similar to `key`; "" for no similar key, or above a limit."""
        if not self._remaining or len(key) > SUGGESTED_KEY_CHARS_MAX:
            return ""
        self._remaining -= 1
        close = difflib.get_close_matches(key.lower(), self._by_lower, 1)
        return self._by_lower[close[0]] if close else ""

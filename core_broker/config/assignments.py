"""The assignment of a value to a key by a source, and suggestions for unknown keys."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from core_broker.errors import SettingProblem


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


def nearest_key(key: str, known: Iterable[str]) -> str:
    """Return the known key most similar to `key`, or "" when no key is similar."""
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(key.lower(), by_lower, 1)
    return by_lower[close[0]] if close else ""

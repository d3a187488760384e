"""What a verification found: problems, each with its place, and notes."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

#: So many problems are shown; the rest is counted.
PROBLEMS_SHOWN = 100
#: So many notes are kept.
NOTES_MAX = 100


class Problem(msgspec.Struct, frozen=True, rename="camel"):
    """Something is not as it must be."""

    #: Relative to the store folder, when it lies there.
    file: str
    #: In the file, in bytes.
    offset: int
    reason: str


@dataclass(slots=True)
class Report:
    """The outcome of a verification; it stays small however much is wrong."""

    root: Path
    limit: int = PROBLEMS_SHOWN
    problems: list[Problem] = field(default_factory=list)
    count: int = 0
    notes: list[str] = field(default_factory=list)
    #: What was looked at: records, units, index items, bytes.
    figures: Counter[str] = field(default_factory=Counter)

    @property
    def is_clean(self) -> bool:
        """Nothing is wrong."""
        return self.count == 0

    def problem(self, path: Path, offset: int, reason: str, times: int = 1) -> None:
        """Note a problem, which may stand for several of its kind."""
        self.count += times
        if len(self.problems) < self.limit:
            self.problems.append(Problem(self.name(path), offset, reason))

    def note(self, text: str) -> None:
        """Note what the reader should know, though it is no problem."""
        if len(self.notes) < NOTES_MAX:
            self.notes.append(text)

    def name(self, path: Path) -> str:
        """Return a path as it is shown; undecodable bytes of a name are made visible."""
        shown = path.relative_to(self.root) if path.is_relative_to(self.root) else path
        return visible(shown)


def visible(name: object) -> str:
    """Return a name or path with bytes that are no UTF-8 made visible, for printing."""
    return str(name).encode("utf-8", "backslashreplace").decode()

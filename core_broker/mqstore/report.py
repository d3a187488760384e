"""The report of a verification: problems with file and offset, notes, counts."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

#: Default number of problems in a report; further problems are only counted.
PROBLEMS_SHOWN = 100
#: Maximum number of notes in a report; further notes are dropped.
NOTES_MAX = 100


class Problem(msgspec.Struct, frozen=True, rename="camel"):
    """An inconsistency in a file."""

    #: Path, relative to the store folder for files below the store folder.
    file: str
    #: Offset in the file, bytes.
    offset: int
    reason: str


@dataclass(slots=True)
class Report:
    """The outcome of a verification. At most `limit` problems and NOTES_MAX notes are kept."""

    root: Path
    limit: int = PROBLEMS_SHOWN
    problems: list[Problem] = field(default_factory=list)
    problem_count: int = 0
    notes: list[str] = field(default_factory=list)
    #: Number of verified records, units, queues, indexItems, tables and bytes.
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def is_clean(self) -> bool:
        """True without any problem."""
        return self.problem_count == 0

    def problem(self, path: Path, offset: int, reason: str, times: int = 1) -> None:
        """Add a problem; `times` counts the entry as several problems of one kind."""
        self.problem_count += times
        if len(self.problems) < self.limit:
            self.problems.append(Problem(display_name(self.root, path), offset, reason))

    def note(self, text: str) -> None:
        """Add a note: information for the reader without a problem."""
        if len(self.notes) < NOTES_MAX:
            self.notes.append(text)


def display_name(root: Path, path: Path) -> str:
    """Return a path for printing, relative to `root` where possible, escaped like `escaped`."""
    return escaped(path.relative_to(root) if path.is_relative_to(root) else path)


def escaped(name: object) -> str:
    """Return a name, path or text for printing, with bytes other than UTF-8 as \\xNN escapes."""
    return str(name).encode("utf-8", "backslashreplace").decode()

"""Readiness of one process: named checks with the reason of each failure."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Readiness:
    """Named checks; the process may receive traffic while every check passes."""

    _checks: dict[str, Callable[[], str]] = field(default_factory=dict)

    def check(self, name: str, reason: Callable[[], str]) -> None:
        """Add a check: a function that returns "" or the reason why the process is not ready.

        Every report calls the function.
        """
        self._checks[name] = reason

    def set(self, name: str, reason: str = "") -> None:
        """Record the result of a check that changes rarely; "" is ready."""
        self._checks[name] = lambda: reason

    def report(self) -> dict[str, str]:
        """Return every check with its reason, "" for passed checks."""
        return {name: reason() for name, reason in self._checks.items()}

    @property
    def ready(self) -> bool:
        """True when every check passes."""
        return not any(self.report().values())

"""Counters and log lines of refused requests. Clients hide many refusals: the broker reports them.

A refusal is logged once per address and reason and minute, however often the peer tries.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable

from core_broker.auth.contracts import Identity, Refusal, Request

log = logging.getLogger(__name__)

#: Time between two log lines about the same address and reason, seconds.
LOGGED_EVERY_S = 60.0
#: Maximum remembered addresses with reasons; all are forgotten when the table is full.
LOGGED_MAX = 1_000
#: Maximum characters of a name from a request in logs and audit lines.
NAME_CHARS_MAX = 255

#: The reasons of refusals; other reasons count as "other", so that metrics stay bounded.
REASONS = frozenset(
    {
        "no-account",
        "unknown-account",
        "disabled-account",
        "bad-signature",
        "no-permission",
        "admin-only",
        "unreadable",
        "replayed",
        "backing-off",
        "no-rules",
    }
)


class RefusalLog:
    """An observer of a gate that counts and logs refusals."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        #: Number of refused requests by reason.
        self.counts: Counter[str] = Counter()
        self._clock = clock
        self._logged: dict[tuple[str, str], float] = {}

    def before(self, address: str, request: Request) -> None:
        """Do nothing: the rules decide."""

    def admitted(self, address: str, request: Request, identity: Identity) -> None:
        """Do nothing: only refusals count."""

    def refused(self, address: str, request: Request, refusal: Refusal) -> None:
        """Count a refusal, and log the first of its address and reason in a minute."""
        reason = refusal.reason if refusal.reason in REASONS else "other"
        self.counts[reason] += 1
        now, key = self._clock(), (address, reason)
        if now - self._logged.get(key, -LOGGED_EVERY_S) < LOGGED_EVERY_S:
            return
        if len(self._logged) >= LOGGED_MAX:
            self._logged.clear()
        self._logged[key] = now
        log.warning(
            "refused request code %d from %s, account %s: %s%s (refusals of this address with"
            " this reason are not logged again for %d s)",
            request.code,
            address,
            shown_name(refusal.account) or "(none)",
            reason,
            f", {shown_name(refusal.resource)}" if refusal.resource else "",
            LOGGED_EVERY_S,
        )


def shown_name(name: str) -> str:
    """Return a name from a request for logs: bounded, without control characters."""
    text = name if name.isprintable() else "".join(c if c.isprintable() else "?" for c in name)
    return text if len(text) <= NAME_CHARS_MAX else text[:NAME_CHARS_MAX] + "…"

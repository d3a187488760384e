"""Hashing of passwords, limited: one hash occupies a processor for a good part of a second.

Without a limit, a few sign-ins at once occupy all processors. Each use of a password (sign-in, also
of unknown names, new password, new account) hashes through `encode`.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.utils.translation import gettext_lazy as _

from console.gateway import Busy
from console.metrics import refused_total

#: Maximum number of passwords that are hashed at a time.
HASHES_MAX = 2
#: Maximum number of requests that wait for a hash. Each occupies one of CONSOLE_REQUESTS_MAX slots.
HASHES_WAITING_MAX = 16


class Turns:
    """At most `at_once` threads inside `one`, and `waiting_max` more that wait."""

    def __init__(self, at_once: int, waiting_max: int) -> None:
        self._inside = threading.BoundedSemaphore(at_once)
        self._admitted = threading.BoundedSemaphore(at_once + waiting_max)

    @contextmanager
    def one(self) -> Iterator[None]:
        """Wait until a thread has left; raises Busy when too many threads wait."""
        if not self._admitted.acquire(blocking=False):
            refused_total.labels("passwords").inc()
            raise Busy(
                _("The console checks too many passwords at the same time."),
                hint=_("Try again in a few seconds."),
            )
        try:
            with self._inside:
                yield
        finally:
            self._admitted.release()


_TURNS = Turns(HASHES_MAX, HASHES_WAITING_MAX)


class LimitedHasher(PBKDF2PasswordHasher):
    """Django's default hasher, with the limits of this module; the format is Django's."""

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        with _TURNS.one():
            return str(super().encode(password, salt, iterations))

"""A lease: at most one process of all that share a database carries out a kind of work.

    HISTORY = Lease("history", duration_ms=30_000)
    if HISTORY.hold(holder, now_ms): ...

The holder renews the lease with each step of the work. When the holder dies, another process works
after `duration_ms`. A process that was suspended may work for one step beyond its lease: the result
of a step must bear a second step of the same time.
"""

import os
import socket
import time
from dataclasses import dataclass

from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import Q

from console.services.leases import models


def new_holder() -> str:
    """Return a name that no other process, and no earlier process, has."""
    return f"{socket.gethostname()}:{os.getpid()}:{time.time_ns()}"


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease by its name; the duration is that of several steps of the work."""

    name: str
    duration_ms: int

    def hold(self, holder: str, now_ms: int) -> bool:
        """Take or renew the lease; return False while another process holds it.

        An end further away than `duration_ms` is of a clock that ran ahead, and does not count.
        """
        until_ms = now_ms + self.duration_ms
        free = Q(holder=holder) | Q(until_ms__lt=now_ms) | Q(until_ms__gt=until_ms)
        row = {"holder": holder, "until_ms": until_ms}
        rows = models.Lease.objects.filter(name=self.name)
        if rows.filter(free).update(**row):
            return True
        if rows.exists():
            return False
        try:
            with transaction.atomic():
                models.Lease.objects.create(name=self.name, **row)
        except IntegrityError:
            return False  # another process was first
        return True

    def release(self, holder: str) -> None:
        """Let another process work at once; errors are ignored, because the lease ends anyway."""
        try:
            models.Lease.objects.filter(name=self.name, holder=holder).delete()
        except DatabaseError:
            return

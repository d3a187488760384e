"""The lease of the sampler: at most one process of all that share a database samples.

The holder renews the lease with each sample. When the holder dies, another process samples after
LEASE_MS. The files are safe beyond the lease: a second sample of the same time is dropped.
"""

from typing import Final

from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import Q

from console.services.history.models import Lease

#: Name of the sampler's row.
SAMPLER: Final = "history"
#: Duration of the lease, ms: three intervals of the sampler.
LEASE_MS: Final = 30_000


def hold(holder: str, now_ms: int) -> bool:
    """Take or renew the lease; return False while another process holds it.

    An end further away than LEASE_MS is of a clock that ran ahead, and does not count.
    """
    until_ms = now_ms + LEASE_MS
    free = Q(holder=holder) | Q(until_ms__lt=now_ms) | Q(until_ms__gt=until_ms)
    row = {"holder": holder, "until_ms": until_ms}
    if Lease.objects.filter(free, name=SAMPLER).update(**row):
        return True
    if Lease.objects.filter(name=SAMPLER).exists():
        return False
    try:
        with transaction.atomic():
            Lease.objects.create(name=SAMPLER, **row)
    except IntegrityError:
        return False  # another process was first
    return True


def release(holder: str) -> None:
    """Let another process sample at once; errors are ignored, because the lease ends anyway."""
    try:
        Lease.objects.filter(name=SAMPLER, holder=holder).delete()
    except DatabaseError:
        return

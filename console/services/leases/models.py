"""Which process carries out periodic work: `lease.py`."""

from django.db import models

NAME_CHARS_MAX = 64
HOLDER_CHARS_MAX = 255


class Lease(models.Model):
    """The right of one process until `until_ms`."""

    name = models.CharField(max_length=NAME_CHARS_MAX, primary_key=True)
    holder = models.CharField(max_length=HOLDER_CHARS_MAX)
    until_ms = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.name} of {self.holder}"

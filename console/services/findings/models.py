"""The last report of each cluster, for all processes: `stored.py`."""

from django.db import models

NAME_CHARS_MAX = 255


class StoredReport(models.Model):
    """The report of a cluster that a worker evaluated."""

    cluster = models.CharField(max_length=NAME_CHARS_MAX, primary_key=True)
    #: Name servers of the evaluated cluster: a report of other addresses is not shown.
    namesrv_addr = models.TextField()
    taken_ms = models.BigIntegerField()
    #: JSON, compressed.
    body = models.BinaryField()

    def __str__(self) -> str:
        return f"report of {self.cluster}"

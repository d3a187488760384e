"""What the gateway keeps over restarts: the brokers that the console has seen (`KnownBrokers`), and
the credentials of clusters (`Signing`); and which clusters are read-only.
"""

from django.db import models

NAME_CHARS_MAX = 255
ACCESS_KEY_CHARS_MAX = 255
REASON_CHARS_MAX = 200


class KnownBroker(models.Model):
    """A broker process that a name server of the cluster has listed."""

    cluster = models.CharField(max_length=NAME_CHARS_MAX)
    name = models.CharField(max_length=NAME_CHARS_MAX)
    broker_id = models.BigIntegerField()
    addr = models.CharField(max_length=NAME_CHARS_MAX)
    cluster_name = models.CharField(max_length=NAME_CHARS_MAX, blank=True)
    seen_ms = models.BigIntegerField()
    #: Time of the last answer; None: the broker never answered.
    contact_ms = models.BigIntegerField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["cluster", "name", "broker_id"], name="one_row_per_broker"
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} ({self.broker_id}) of {self.cluster}"


class ClusterCredentials(models.Model):
    """The account that signs the console's requests to a cluster."""

    cluster = models.CharField(max_length=NAME_CHARS_MAX, unique=True)
    access_key = models.CharField(max_length=ACCESS_KEY_CHARS_MAX)
    #: Secret key and security token, encrypted (`credentials.py`).
    encrypted = models.TextField()
    changed_ms = models.BigIntegerField()
    changed_by = models.CharField(max_length=NAME_CHARS_MAX, blank=True)

    def __str__(self) -> str:
        return f"{self.access_key} of {self.cluster}"


class ReadOnlyCluster(models.Model):
    """A cluster that the console must not change."""

    cluster = models.CharField(max_length=NAME_CHARS_MAX, unique=True)
    reason = models.CharField(max_length=REASON_CHARS_MAX, blank=True)
    changed_by = models.CharField(max_length=NAME_CHARS_MAX, blank=True)
    since_ms = models.BigIntegerField()

    def __str__(self) -> str:
        return self.cluster

"""The masters of replica sets over time, as the history's sampler saw them."""

from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

NAME_CHARS_MAX = 255


class Cause(models.TextChoices):
    """Why the master of a set changed, as far as the samples around the change tell."""

    FIRST = "first", _("First observation")
    LOST = "lost", _("The master does not answer")
    MASTER_LOST = "master-lost", _("Failover: the previous master did not answer")
    MASTER_RESTARTED = "master-restarted", _("Failover: the previous master restarted")
    HANDED_OVER = (
        "handed-over",
        _(
            "The previous master kept running: an election by an operator, "
            "or lost connections to the controllers"
        ),
    )
    RETURNED = "returned", _("The same master answers again")
    ELECTED_AGAIN = "elected-again", _("The same master was elected again")
    OPERATOR = "operator", _("Election by an operator of this console")
    UNWATCHED = "unwatched", _("Changed while nobody watched")


class WatchSpan(models.Model):
    """A time during which the sampler watched a cluster without a gap."""

    cluster = models.CharField(max_length=NAME_CHARS_MAX, db_index=True)
    begin_ms = models.BigIntegerField()
    end_ms = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.cluster}: {self.begin_ms} to {self.end_ms}"


class RoleChange(models.Model):
    """A set has this master from `at_ms` on. An empty `addr`: no master answered."""

    cluster = models.CharField(max_length=NAME_CHARS_MAX)
    name = models.CharField(max_length=NAME_CHARS_MAX)
    at_ms = models.BigIntegerField()
    addr = models.CharField(max_length=NAME_CHARS_MAX, blank=True)
    #: Id at the controllers, or broker id.
    number = models.BigIntegerField(null=True)
    epoch = models.BigIntegerField(null=True)
    #: The last master of before, also when no master answered in between.
    previous_addr = models.CharField(max_length=NAME_CHARS_MAX, blank=True)
    previous_number = models.BigIntegerField(null=True)
    previous_epoch = models.BigIntegerField(null=True)
    cause = models.CharField(max_length=20)
    #: The user of an election by this console.
    username = models.CharField(max_length=NAME_CHARS_MAX, blank=True)

    class Meta:
        indexes = (models.Index(fields=["cluster", "name", "at_ms"], name="role_change_of_set"),)

    def __str__(self) -> str:
        return f"{self.name} of {self.cluster}: {self.addr or 'no master'} at {self.at_ms}"

    @property
    def is_failover(self) -> bool:
        """Whether another replica became the master."""
        return bool(self.addr and self.previous_addr and self.addr != self.previous_addr)

    @property
    def unseen(self) -> int:
        """Number of elections between the master of before and this one."""
        if self.epoch is None or self.previous_epoch is None:
            return 0
        return max(0, self.epoch - self.previous_epoch - 1)

    @property
    def cause_text(self) -> Any:
        return Cause(self.cause).label if self.cause in Cause.values else self.cause

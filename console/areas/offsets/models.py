"""What was moved, from where to where: for the check afterwards, and for undoing it."""

from typing import Any

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

#: Of each group; older rows go when a new one comes.
RESETS_KEPT = 100


class OffsetReset(models.Model):
    """One reset of a group in a topic.

    `queues` is a list of objects, one for each queue that was to move: broker, queue_id, old (null
    when the group had no offset), new, and moved, which becomes true when the group was seen there.
    """

    cluster = models.CharField(max_length=64)
    group = models.CharField(max_length=255)
    topic = models.CharField(max_length=255)
    goal = models.CharField(max_length=16)
    online = models.BooleanField()
    queues = models.JSONField()
    errors = models.JSONField(default=list)
    undoes = models.OneToOneField(
        "self", models.SET_NULL, null=True, blank=True, related_name="undone_by"
    )
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("offset reset")
        verbose_name_plural = _("offset resets")
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["cluster", "group", "-at"], name="resets_of_group")]

    def __str__(self) -> str:
        return f"reset {self.pk} of {self.cluster}/{self.group} in {self.topic}"

    @property
    def at_ms(self) -> int:
        return int(self.at.timestamp() * 1000)

    @property
    def is_undone(self) -> bool:
        return OffsetReset.objects.filter(undoes=self).exists()

    @property
    def may_undo(self) -> bool:
        """Whether there is an offset to go back to."""
        return any(each["old"] is not None for each in self.queues) and not self.is_undone

    def places_before(self) -> list[dict[str, Any]]:
        return [each for each in self.queues if each["old"] is not None]

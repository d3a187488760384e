"""The history of offset resets: old and new offsets, for the check after a reset and for undo."""

from typing import Any

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

#: Resets kept per group, rows. A new reset deletes the oldest rows beyond this limit.
RESETS_KEPT = 100


class OffsetReset(models.Model):
    """A reset of a group in a topic.

    `queues` is a list of objects, one object per changed queue: broker, queue_id, old (null
    when the group had no offset), new, and moved (true once the group was observed at `new`).
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
        """True when the reset is not undone and some queue had an offset before."""
        return any(queue["old"] is not None for queue in self.queues) and not self.is_undone

    def queues_with_offset(self) -> list[dict[str, Any]]:
        return [queue for queue in self.queues if queue["old"] is not None]

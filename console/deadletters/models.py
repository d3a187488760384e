"""The ledger of dead letters that were sent again."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

#: The result of a row whose dead letter is being sent right now.
SENDING = "sending"


class Resend(models.Model):
    """One dead letter that somebody sends again, and what became of it.

    The row is there before the letter is sent: it keeps everybody else from sending the same one
    at the same time, and it stays when the console dies on the way. The dead letter itself stays
    where it is, so this is what tells whether it was dealt with.
    """

    cluster = models.CharField(max_length=64)
    group = models.CharField(max_length=255)
    #: Where the dead letter is stored; it names the message within its cluster.
    offset_msg_id = models.CharField(max_length=56)
    #: What was sent again in one go has one number.
    batch = models.UUIDField(db_index=True)
    msg_id = models.CharField(max_length=255, blank=True)
    target = models.CharField(max_length=16)
    topic = models.CharField(max_length=255, blank=True)
    result = models.CharField(max_length=16, default=SENDING)
    reason = models.TextField(blank=True)
    new_offset_msg_id = models.CharField(max_length=56, blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("resent dead letter")
        verbose_name_plural = _("resent dead letters")
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["cluster", "offset_msg_id"], name="resend_letter")]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "offset_msg_id"],
                condition=models.Q(result=SENDING),
                name="resend_one_at_a_time",
            )
        ]

    def __str__(self) -> str:
        return f"{self.cluster}/{self.group}/{self.offset_msg_id}: {self.result}"

    @property
    def at_ms(self) -> int:
        return int(self.at.timestamp() * 1000)

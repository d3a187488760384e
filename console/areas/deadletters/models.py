"""The ledger of dead letters: what was sent again, what was discarded, what a replay is at."""

from datetime import datetime

from django.conf import settings
from django.db import models
from django.utils.translation import gettext
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
    #: When it was stored there; None where it was not found.
    died_ms = models.BigIntegerField(null=True)
    #: What was sent again in one go, or by one replay, has one number.
    batch = models.UUIDField(db_index=True)
    msg_id = models.CharField(max_length=255, blank=True)
    target = models.CharField(max_length=16)
    topic = models.CharField(max_length=255, blank=True)
    edited = models.BooleanField(default=False)
    result = models.CharField(max_length=16, default=SENDING)
    reason = models.TextField(blank=True)
    new_offset_msg_id = models.CharField(max_length=56, blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("resent dead letter")
        verbose_name_plural = _("resent dead letters")
        ordering = ["-at", "-id"]
        indexes = [
            models.Index(fields=["cluster", "offset_msg_id"], name="resend_letter"),
            models.Index(fields=["cluster", "group", "result", "died_ms"], name="resend_group"),
            models.Index(fields=["cluster", "msg_id"], name="resend_message"),
        ]
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
        return _ms(self.at)

    @property
    def told_reason(self) -> str:
        """The console's own sentences are kept in English, and told in the reader's language."""
        return gettext(self.reason) if self.reason else ""


class Discard(models.Model):
    """A dead letter that somebody marked as dealt with; taking the mark away deletes the row."""

    cluster = models.CharField(max_length=64)
    group = models.CharField(max_length=255)
    offset_msg_id = models.CharField(max_length=56)
    died_ms = models.BigIntegerField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("discarded dead letter")
        verbose_name_plural = _("discarded dead letters")
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["cluster", "group", "died_ms"], name="discard_group")]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "offset_msg_id"], name="discarded_once")
        ]

    def __str__(self) -> str:
        return f"{self.cluster}/{self.group}/{self.offset_msg_id}: discarded"

    @property
    def at_ms(self) -> int:
        return _ms(self.at)


class Replay(models.Model):
    """Sending again whatever matches, by a job: what was asked for, and how far it is.

    `pieces` is what is left of each queue, as it was when the replay was made; what dies later is
    not part of it. Pieces and counts move together, after the rows of the letters were written, so
    a job that takes over from a lost one counts each letter once.
    """

    cluster = models.CharField(max_length=64)
    group = models.CharField(max_length=255)
    batch = models.UUIDField(unique=True)
    #: As the API takes it: filter, target, edit, again.
    wish = models.JSONField()
    #: Messages per second.
    rate = models.PositiveIntegerField()
    pieces = models.JSONField()
    #: Letters that are to be looked at; how many of them match is known at the end.
    total = models.BigIntegerField()
    looked_at = models.BigIntegerField(default=0)
    matched = models.BigIntegerField(default=0)
    sent = models.BigIntegerField(default=0)
    failed = models.BigIntegerField(default=0)
    skipped = models.BigIntegerField(default=0)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("replay of dead letters")
        verbose_name_plural = _("replays of dead letters")
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["cluster", "group", "-at"], name="replays_of_group")]

    def __str__(self) -> str:
        return f"replay {self.pk} of {self.cluster}/{self.group}"

    @property
    def at_ms(self) -> int:
        return _ms(self.at)

    @property
    def is_done(self) -> bool:
        return not self.pieces


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)

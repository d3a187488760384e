"""The ledger of dead letters: resends, discards, and the progress of replays."""

from datetime import datetime

from django.conf import settings
from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

#: Result of a row during the resend.
SENDING = "sending"


class Resend(models.Model):
    """One resend of a dead letter, with the outcome.

    The row is inserted before the send. It blocks concurrent resends of the same message, and
    survives a crash of the console. The message stays in the dead-letter queue, so the ledger is
    the only record of the resend.
    """

    cluster = models.CharField(max_length=64)
    group = models.CharField(max_length=255)
    #: Offset message id of the dead letter; unique in a cluster.
    offset_msg_id = models.CharField(max_length=56)
    #: Store time of the dead letter; None for an unknown message.
    died_ms = models.BigIntegerField(null=True)
    #: Id of the request or replay.
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
    """A discarded dead letter. A restore deletes the row."""

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
    """A job that resends matching dead letters: request parameters and progress.

    `pieces` holds the remaining offset range per queue, fixed at the creation of the replay;
    later dead letters are excluded. Pieces and counts are saved together, after the ledger rows, so
    that a successor of a lost job counts every message once.
    """

    cluster = models.CharField(max_length=64)
    group = models.CharField(max_length=255)
    batch = models.UUIDField(unique=True)
    #: Request parameters of the API: filter, target, edit, again.
    wish = models.JSONField()
    #: Messages per second.
    rate = models.PositiveIntegerField()
    pieces = models.JSONField()
    #: Messages to scan. The number of matches is known at the end.
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

"""Stored responses of writes with an `Idempotency-Key`."""

from django.db import models
from django.utils.translation import gettext_lazy as _

KEY_CHARS_MAX = 255


class KeptAnswer(models.Model):
    """One request of one account with one key.

    `status` is null while the request is in progress.
    """

    user_id = models.BigIntegerField()
    key = models.CharField(max_length=KEY_CHARS_MAX)
    #: Digest of method, URL and body, to detect a key that is reused for a different request.
    request = models.CharField(max_length=64)
    at = models.DateTimeField(db_index=True)
    status = models.PositiveSmallIntegerField(null=True)
    headers = models.JSONField(default=dict)
    #: JSON text of the response; null for a text over BODY_CHARS_MAX.
    body = models.TextField(null=True)  # noqa: DJ001 -- an empty body is not a missing one

    class Meta:
        verbose_name = _("kept answer")
        verbose_name_plural = _("kept answers")
        constraints = [
            models.UniqueConstraint(fields=["user_id", "key"], name="one_answer_per_key")
        ]

    def __str__(self) -> str:
        return f"{self.key}: {self.status or 'under way'}"

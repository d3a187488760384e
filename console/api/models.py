"""Answers of writes that came with an `Idempotency-Key`."""

from django.db import models
from django.utils.translation import gettext_lazy as _

KEY_CHARS_MAX = 255


class KeptAnswer(models.Model):
    """One request of one account under one key. Without a status it is under way."""

    user_id = models.BigIntegerField()
    key = models.CharField(max_length=KEY_CHARS_MAX)
    #: A digest of method, address and body: the same key with another request is a mistake.
    request = models.CharField(max_length=64)
    at = models.DateTimeField(db_index=True)
    status = models.PositiveSmallIntegerField(null=True)
    headers = models.JSONField(default=dict)
    #: JSON as it was sent; null when it was too long to keep.
    body = models.TextField(null=True)  # noqa: DJ001 -- an empty body is not a missing one

    class Meta:
        verbose_name = _("kept answer")
        verbose_name_plural = _("kept answers")
        constraints = [
            models.UniqueConstraint(fields=["user_id", "key"], name="one_answer_per_key")
        ]

    def __str__(self) -> str:
        return f"{self.key}: {self.status or 'under way'}"

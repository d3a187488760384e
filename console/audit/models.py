"""The audit table. Rows are written by `recording.py` and removed by `retention.py` only."""

from typing import Any, NoReturn

from django.db import models
from django.utils.translation import gettext_lazy as _

ACTION_CHARS_MAX = 64
TARGET_CHARS_MAX = 255
SOURCE_CHARS_MAX = 64
REQUEST_ID_CHARS_MAX = 64
USERNAME_CHARS_MAX = 150


class Result(models.TextChoices):
    """Result of an action. A row that stays “begun” was interrupted: the console stopped."""

    BEGUN = "begun", _("begun")
    DONE = "done", _("done")
    PARTLY = "partly", _("in part")
    FAILED = "failed", _("failed")
    DENIED = "denied", _("denied")


class Via(models.TextChoices):
    PAGE = "page", _("page")
    API = "api", _("API")
    CLASSIC = "classic", _("Classic API")
    JOB = "job", _("job")


class RowsStay(TypeError):
    """Code tried to change or remove rows of the audit log."""


class ReadOnlyRows(models.QuerySet["AuditRow"]):
    """Read-only query set: every method that would change rows raises RowsStay."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise RowsStay("rows of the audit log are read-only; retention.py removes old rows")

    update = delete = _refuse
    bulk_update = bulk_create = update_or_create = get_or_create = _refuse


class AuditRow(models.Model):
    """One action.

    The row holds the user's name, not a foreign key: the row outlives the account.
    """

    at = models.DateTimeField(db_index=True)
    finished_at = models.DateTimeField(null=True)
    username = models.CharField(max_length=USERNAME_CHARS_MAX)
    role = models.CharField(max_length=16)
    token = models.CharField(max_length=64, blank=True)
    via = models.CharField(max_length=16, choices=Via.choices)
    source = models.CharField(max_length=SOURCE_CHARS_MAX, blank=True)
    request_id = models.CharField(max_length=REQUEST_ID_CHARS_MAX, blank=True)
    action = models.CharField(max_length=ACTION_CHARS_MAX)
    cluster = models.CharField(max_length=64, blank=True)
    target = models.CharField(max_length=TARGET_CHARS_MAX, blank=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    outcomes = models.JSONField(null=True)
    result = models.CharField(max_length=16, choices=Result.choices)
    reason = models.TextField(blank=True)

    objects = ReadOnlyRows.as_manager()
    #: Writable manager for `recording.py` and `retention.py` only; a test enforces the restriction.
    house = models.Manager["AuditRow"]()

    class Meta:
        verbose_name = _("audit row")
        verbose_name_plural = _("audit rows")
        ordering = ["-pk"]
        default_permissions = ()
        indexes = [
            models.Index(fields=["username", "-id"], name="audit_by_user"),
            models.Index(fields=["cluster", "-id"], name="audit_by_cluster"),
            models.Index(fields=["action", "-id"], name="audit_by_action"),
            models.Index(fields=["target", "-id"], name="audit_by_target"),
            models.Index(fields=["result", "-id"], name="audit_by_result"),
        ]

    def __str__(self) -> str:
        return f"{self.username} {self.action} {self.cluster}/{self.target}: {self.result}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise RowsStay("rows of the audit log are not edited")
        super().save(*args, **kwargs)

    def delete(self, *_: Any, **__: Any) -> NoReturn:
        raise RowsStay("rows of the audit log are not deleted")

    @property
    def at_ms(self) -> int:
        return int(self.at.timestamp() * 1000)

    @property
    def took_ms(self) -> int | None:
        if self.finished_at is None:
            return None
        return int((self.finished_at - self.at).total_seconds() * 1000)

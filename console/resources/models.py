"""Console records of configured resources: deletion protection, labels and change history."""

from django.db import models
from django.utils.translation import gettext_lazy as _

NAME_CHARS_MAX = 255
KIND_CHARS_MAX = 16


class Kind(models.TextChoices):
    """Kinds of resources with protection or change history."""

    TOPIC = "topic", _("topic")
    GROUP = "group", _("group")
    BROKER = "broker", _("broker")
    ACL_USER = "acl_user", _("user of access control")
    ACL_ACCOUNT = "acl_account", _("account of access control")
    ACL_WHITE_LIST = "acl_white_list", _("white list of access control")


class Protection(models.Model):
    """Protection of a topic or group from deletion in this console."""

    cluster = models.CharField(max_length=NAME_CHARS_MAX)
    kind = models.CharField(max_length=KIND_CHARS_MAX, choices=Kind.choices)
    name = models.CharField(max_length=NAME_CHARS_MAX)
    by = models.CharField(max_length=NAME_CHARS_MAX)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        app_label = "clusters"  # its migrations made the table
        constraints = (
            models.UniqueConstraint(fields=("cluster", "kind", "name"), name="protected_once"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.name} of {self.cluster}"


class LabelSet(models.Model):
    """The labels of a topic or group: a map of keys and values, never empty."""

    cluster = models.CharField(max_length=NAME_CHARS_MAX)
    kind = models.CharField(max_length=KIND_CHARS_MAX, choices=Kind.choices)
    name = models.CharField(max_length=NAME_CHARS_MAX)
    labels = models.JSONField()
    changed_ms = models.BigIntegerField()
    changed_by = models.CharField(max_length=NAME_CHARS_MAX)

    class Meta:
        app_label = "clusters"
        constraints = (
            models.UniqueConstraint(fields=("cluster", "kind", "name"), name="labels_once"),
        )

    def __str__(self) -> str:
        return f"labels of {self.kind} {self.name} of {self.cluster}"


class Change(models.Model):
    """A change of settings of a topic, group or broker. `undone_by` is empty until the undo.

    `lines` is a list of {"broker", "field", "before", "after"}, for brokers that accepted the
    change.
    """

    cluster = models.CharField(max_length=NAME_CHARS_MAX)
    kind = models.CharField(max_length=KIND_CHARS_MAX, choices=Kind.choices)
    name = models.CharField(max_length=NAME_CHARS_MAX)
    lines = models.JSONField()
    by = models.CharField(max_length=NAME_CHARS_MAX)
    at = models.DateTimeField(auto_now_add=True)
    undone_by = models.CharField(max_length=NAME_CHARS_MAX, blank=True)

    class Meta:
        app_label = "clusters"  # its migrations made the table
        ordering = ("-at", "-pk")
        indexes = (models.Index(fields=("cluster", "kind", "name", "-at"), name="changes_of"),)

    def __str__(self) -> str:
        return f"{self.kind} {self.name} of {self.cluster} at {self.at}"

    @property
    def at_ms(self) -> int:
        return int(self.at.timestamp() * 1000)

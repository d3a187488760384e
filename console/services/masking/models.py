"""The table of rules."""

from typing import Any, Final

from django.db import models
from django.utils.translation import gettext_lazy as _

from console.gateway.messages.masks import EXPRESSION_CHARS_MAX, MaskKind

NAME_CHARS_MAX: Final = 120
CLUSTER_CHARS_MAX: Final = 63
TOPIC_CHARS_MAX: Final = 255
NOTE_CHARS_MAX: Final = 300
USER_CHARS_MAX: Final = 150

KIND_TITLES: Final = [
    (MaskKind.JSON.value, _("Values at a JSON path")),
    (MaskKind.REGEX.value, _("Matches of a regular expression in the body")),
    (MaskKind.BODY.value, _("The whole body")),
    (MaskKind.PROPERTY.value, _("Properties by name")),
    (MaskKind.KEYS.value, _("The keys")),
]


class MaskingRule(models.Model):
    """A rule by name; an empty cluster means all clusters."""

    name = models.CharField(max_length=NAME_CHARS_MAX, unique=True)
    cluster = models.CharField(max_length=CLUSTER_CHARS_MAX, blank=True)
    #: Topic pattern with `*`.
    topic = models.CharField(max_length=TOPIC_CHARS_MAX)
    kind = models.CharField(max_length=16, choices=KIND_TITLES)
    expression = models.CharField(max_length=EXPRESSION_CHARS_MAX, blank=True)
    note = models.CharField(max_length=NOTE_CHARS_MAX, blank=True)
    enabled = models.BooleanField(default=True)
    changed_ms = models.BigIntegerField()
    changed_by = models.CharField(max_length=USER_CHARS_MAX, blank=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def all_clusters(self) -> bool:
        return not self.cluster

    @property
    def state(self) -> dict[str, Any]:
        """The rule in the audit list."""
        names = ("cluster", "topic", "kind", "expression", "note", "enabled")
        return {name: getattr(self, name) for name in names}

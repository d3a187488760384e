"""Stored schemas and rules."""

from typing import Any, Final

from django.db import models

from console.gateway.messages.schemas.decoder import Format
from console.gateway.messages.schemas.framing import Framing

CLUSTER_CHARS_MAX: Final = 63
NAME_CHARS_MAX: Final = 80
TYPE_CHARS_MAX: Final = 500
TOPIC_CHARS_MAX: Final = 255
USER_CHARS_MAX: Final = 150


class BodySchema(models.Model):
    """A descriptor set or Avro schema of a cluster's messages."""

    cluster = models.CharField(max_length=CLUSTER_CHARS_MAX)
    name = models.CharField(max_length=NAME_CHARS_MAX)
    format = models.CharField(max_length=16, choices=[(each.value, each.label) for each in Format])
    content = models.BinaryField()
    #: SHA-256 of the content, hexadecimal.
    digest = models.CharField(max_length=64)
    size_bytes = models.IntegerField()
    #: Number of message types.
    type_count = models.IntegerField()
    changed_ms = models.BigIntegerField()
    changed_by = models.CharField(max_length=USER_CHARS_MAX)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="one_body_schema_of_a_name")
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def state(self) -> dict[str, Any]:
        """The values for the audit list."""
        return {"format": self.format, "sha256": self.digest, "size_bytes": self.size_bytes}


class BodyRule(models.Model):
    """Bodies of the topics that fit a pattern are decoded by a schema."""

    schema = models.ForeignKey(BodySchema, models.PROTECT, related_name="rules")
    topic = models.CharField(max_length=TOPIC_CHARS_MAX)
    #: Full name of the message type; empty for an Avro schema as a whole.
    type_name = models.CharField(max_length=TYPE_CHARS_MAX, blank=True)
    framing = models.CharField(
        max_length=16, choices=[(each.value, each.value) for each in Framing]
    )
    #: The cluster of the schema, for the constraint.
    cluster = models.CharField(max_length=CLUSTER_CHARS_MAX)
    changed_ms = models.BigIntegerField()
    changed_by = models.CharField(max_length=USER_CHARS_MAX)

    class Meta:
        ordering = ["topic"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "topic"], name="one_body_rule_of_a_pattern")
        ]

    def __str__(self) -> str:
        return self.topic

    @property
    def state(self) -> dict[str, Any]:
        """The values for the audit list."""
        return {
            "topic": self.topic,
            "schema": self.schema.name,
            "type": self.type_name,
            "framing": self.framing,
        }

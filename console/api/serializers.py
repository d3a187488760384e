"""Serializers shared by the resources of all areas."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError


class FailureSerializer(serializers.Serializer[Any]):
    """A broker or name server whose part of the answer is missing, with the reason."""

    broker = serializers.CharField()
    addr = serializers.CharField()
    reason = serializers.CharField()
    as_of_ms = serializers.IntegerField(
        allow_null=True,
        help_text="Time of the broker's last values, which the answer contains in place of "
        "current values; null: the answer lacks the broker's values.",
    )
    kind = serializers.ChoiceField(
        choices=["unreachable", "refused"],
        help_text="unreachable: no answer arrived. refused: the broker answered with an error.",
    )


class AnsweredSerializer(serializers.Serializer[Any]):
    """Common fields of answers of a cluster."""

    asked_at_ms = serializers.IntegerField(
        help_text="Time of the request to the cluster; an answer may be a few seconds old."
    )
    failures = FailureSerializer(many=True)


class OutcomeSerializer(serializers.Serializer[Any]):
    """Result of a change on one broker; `error` is null on success."""

    broker = serializers.CharField()
    addr = serializers.CharField()
    error = serializers.CharField(allow_null=True)


class OutcomesSerializer(serializers.Serializer[Any]):
    """One outcome per broker. The status is 207 when an outcome has an error."""

    name = serializers.CharField()
    outcomes = OutcomeSerializer(many=True)


class FieldChangeSerializer(serializers.Serializer[Any]):
    """A field on one broker; `before` is null for a new object, `after` for a deleted one."""

    broker = serializers.CharField()
    field = serializers.CharField()
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField(allow_null=True)


class DryRunSerializer(serializers.Serializer[Any]):
    """The changes that the same request without `dry_run` would make."""

    name = serializers.CharField()
    dry_run = serializers.BooleanField()
    changes = FieldChangeSerializer(many=True)
    risks = serializers.ListField(
        child=serializers.DictField(),
        required=False,
        help_text="What the change would endanger, for a topic the queues that no consumer would "
        "read. The request without `dry_run` needs the parameter in `confirm` then.",
    )
    confirm = serializers.CharField(required=False, help_text="Present with `risks`.")


def outcomes_or_dry_run(
    outcomes: type[serializers.Serializer[Any]] = OutcomesSerializer,
) -> dict[int, Any]:
    """Return the responses of a change: one outcome per broker, or with `dry_run` the changes."""
    name = outcomes.__name__.removesuffix("Serializer")
    either = PolymorphicProxySerializer(
        component_name=f"{name}OrDryRun",
        serializers=[outcomes, DryRunSerializer],
        resource_type_field_name=None,
    )
    return {200: either, 207: outcomes}


class BodySerializer(serializers.Serializer[Any]):
    """A request body; an unknown field is an error."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            unknown = sorted(str(key) for key in set(data) - set(self.fields))
            if unknown:
                known = ", ".join(self.fields)
                message = _("Unknown field; known fields: %(known)s") % {"known": known}
                raise serializers.ValidationError({key: [message] for key in unknown})
        return super().to_internal_value(data)


def patched(
    fields: type[BodySerializer], stored: Mapping[str, Any], changes: Any
) -> dict[str, Any]:
    """Return the body of a stored object with the changes of a PATCH. Raises ValidationError."""
    if not isinstance(changes, Mapping):
        raise ValidationError({"detail": [_("Expected an object.")]})
    kept = fields().fields
    return {**{name: value for name, value in stored.items() if name in kept}, **changes}

"""Serializers that resources of every area share."""

from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers


class FailureSerializer(serializers.Serializer[Any]):
    """A broker whose part is missing from the answer."""

    broker = serializers.CharField()
    addr = serializers.CharField()
    reason = serializers.CharField()


class AnsweredSerializer(serializers.Serializer[Any]):
    """What every answer about a cluster tells about itself."""

    asked_at_ms = serializers.IntegerField(
        help_text="When the cluster was asked; an answer may be a few seconds old."
    )
    failures = FailureSerializer(many=True)


class OutcomeSerializer(serializers.Serializer[Any]):
    """How one broker took a change; `error` is null where it was done."""

    broker = serializers.CharField()
    addr = serializers.CharField()
    error = serializers.CharField(allow_null=True)


class OutcomesSerializer(serializers.Serializer[Any]):
    """One outcome per broker. With any error among them the status is 207."""

    name = serializers.CharField()
    outcomes = OutcomeSerializer(many=True)


class BodySerializer(serializers.Serializer[Any]):
    """A request body; a field it does not know is an error, not a silent nothing."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            unknown = sorted(str(key) for key in set(data) - set(self.fields))
            if unknown:
                known = ", ".join(self.fields)
                message = _("No such field; known are: %(known)s") % {"known": known}
                raise serializers.ValidationError({key: [message] for key in unknown})
        return super().to_internal_value(data)

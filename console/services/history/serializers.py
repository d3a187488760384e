"""JSON of the history."""

from typing import Any

from rest_framework import serializers


def _column(help_text: str) -> Any:
    return serializers.ListField(
        child=serializers.FloatField(allow_null=True), allow_null=True, help_text=help_text
    )


class HistorySerializer(serializers.Serializer[Any]):
    """A metric over time: point `i` covers `step_ms` from `begin_ms + i * step_ms`.

    A gap is null: not measured, or the cluster did not answer.
    """

    metric = serializers.CharField()
    unit = serializers.CharField(help_text="msg/s, messages, clients, ratio, s or ms")
    begin_ms = serializers.IntegerField()
    end_ms = serializers.IntegerField()
    step_ms = serializers.IntegerField()
    count = serializers.IntegerField(help_text="Number of points.")
    first_sample_ms = serializers.IntegerField(
        allow_null=True, help_text="Time of the oldest sample kept; null without any sample."
    )
    interval_ms = serializers.IntegerField(
        allow_null=True, help_text="Interval between two samples; null without any sample."
    )
    avg = _column("Means; null for metrics without means.")
    min = _column("Least values; null for metrics without them.")
    max = _column("Greatest values; null for metrics without them.")
    last = _column("Last values; null for metrics without them.")

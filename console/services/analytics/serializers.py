"""Response fields of the analytics resources."""

from typing import Any

from rest_framework import serializers


class ScopedSerializer(serializers.Serializer[Any]):
    """Time range of the response, and freshness of the lake."""

    begin_ms = serializers.IntegerField()
    end_ms = serializers.IntegerField()
    step_ms = serializers.IntegerField()
    committed_ms = serializers.IntegerField(
        allow_null=True, help_text="Commit time of the last trace job; null before the first."
    )
    broken_files = serializers.ListField(
        child=serializers.CharField(),
        help_text="Unreadable files of the lake; their records are missing.",
    )


class PercentilesSerializer(serializers.Serializer[Any]):
    """Percentiles in milliseconds, within 1 %; null without records."""

    p50 = serializers.FloatField(allow_null=True)
    p95 = serializers.FloatField(allow_null=True)
    p99 = serializers.FloatField(allow_null=True)
    max = serializers.FloatField(allow_null=True)


class AggregatesSerializer(serializers.Serializer[Any]):
    """Counts, success rates (0 to 1) and latencies."""

    sends = serializers.IntegerField(source="counts.sends", help_text="Send attempts.")
    send_failures = serializers.IntegerField(source="counts.send_failures")
    send_success = serializers.FloatField(source="counts.send_success", allow_null=True)
    bytes = serializers.IntegerField(source="counts.bytes")
    attempts = serializers.IntegerField(source="counts.attempts", help_text="Listener calls.")
    successes = serializers.IntegerField(source="counts.successes")
    failures = serializers.IntegerField(source="counts.failures")
    retries = serializers.IntegerField(source="counts.retries")
    dead_letters = serializers.IntegerField(source="counts.dead_letters")
    deliveries = serializers.IntegerField(
        source="counts.deliveries", help_text="First deliveries of messages to groups."
    )
    consumed = serializers.IntegerField(
        source="counts.consumed", help_text="Messages consumed successfully by groups."
    )
    consume_success = serializers.FloatField(source="counts.consume_success", allow_null=True)
    latency = PercentilesSerializer(help_text="From stored to first delivery.")
    end_to_end = PercentilesSerializer(help_text="From the send call to the first success.")
    send_cost = PercentilesSerializer(help_text="Duration of the send call.")


class PointSerializer(AggregatesSerializer):
    """Counts, success rates and latencies of a step of time; all null without records."""

    at_ms = serializers.IntegerField()

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        fields = super().get_fields()
        for field in fields.values():
            field.allow_null |= (field.source or "").startswith("counts.")
        return fields


class NamedSerializer(AggregatesSerializer):
    name = serializers.CharField(allow_null=True, help_text="Null if not recorded.")


class SlowDeliverySerializer(serializers.Serializer[Any]):
    msg_id = serializers.CharField()
    reason = serializers.CharField(help_text="slow, pending or unknown")
    topic = serializers.CharField(allow_null=True)
    producer_group = serializers.CharField(allow_null=True)
    consumer_group = serializers.CharField(allow_null=True)
    kind = serializers.CharField(allow_null=True)
    at_ms = serializers.IntegerField()
    stored_ms = serializers.IntegerField(allow_null=True)
    start_ms = serializers.IntegerField(
        allow_null=True, help_text="First delivery to a listener; null if never delivered."
    )
    latency_ms = serializers.IntegerField(allow_null=True)
    end_to_end_ms = serializers.IntegerField(allow_null=True)
    duration_ms = serializers.IntegerField(allow_null=True)
    attempts = serializers.IntegerField(allow_null=True)
    success = serializers.BooleanField(allow_null=True)


class EdgeSerializer(serializers.Serializer[Any]):
    """An edge of the topology: producer group to topic, or topic to consumer group."""

    origin = serializers.SerializerMethodField(help_text="Null if not recorded.")
    target = serializers.SerializerMethodField()
    kind = serializers.SerializerMethodField(help_text="sends or consumes")
    messages = serializers.IntegerField()
    bytes = serializers.IntegerField()
    attempts = serializers.IntegerField()
    failures = serializers.IntegerField()
    failure_rate = serializers.FloatField(allow_null=True)
    dead_letters = serializers.IntegerField()
    never_consumed = serializers.IntegerField(help_text="Pending: not consumed, not filtered.")
    unconfirmed = serializers.IntegerField(
        help_text="No trace of consumption; subscription or offsets of the group are unknown."
    )
    last_ms = serializers.IntegerField()

    def get_origin(self, edge: Any) -> str | None:
        return edge.topic if edge.is_consuming else edge.producer_group

    def get_target(self, edge: Any) -> str | None:
        return edge.consumer_group if edge.is_consuming else edge.topic

    def get_kind(self, edge: Any) -> str:
        return "consumes" if edge.is_consuming else "sends"


class StepSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(
        help_text="sent, stored, delivered, succeeded; "
        "also retried, dead, never_consumed, unconfirmed"
    )
    count = serializers.IntegerField()


class HeatCellSerializer(serializers.Serializer[Any]):
    at_ms = serializers.IntegerField()
    from_ms = serializers.IntegerField()
    to_ms = serializers.IntegerField(allow_null=True)
    count = serializers.IntegerField()


class SummarySerializer(ScopedSerializer):
    total = AggregatesSerializer()
    records = serializers.IntegerField(help_text="All trace records of the lake.")
    broken_records = serializers.IntegerField()
    lost_messages = serializers.IntegerField()


class SeriesSerializer(ScopedSerializer):
    items = PointSerializer(many=True)


class NamedListSerializer(ScopedSerializer):
    items = NamedSerializer(many=True)


class LatencySerializer(ScopedSerializer):
    by = serializers.CharField()
    measure = serializers.CharField()
    total = PercentilesSerializer()
    items = serializers.ListField(child=serializers.DictField())


class SlowListSerializer(ScopedSerializer):
    items = SlowDeliverySerializer(many=True)


class EdgeListSerializer(ScopedSerializer):
    items = EdgeSerializer(many=True)


class FunnelSerializer(ScopedSerializer):
    items = StepSerializer(many=True)


class HeatMapSerializer(ScopedSerializer):
    measure = serializers.CharField()
    items = HeatCellSerializer(many=True)

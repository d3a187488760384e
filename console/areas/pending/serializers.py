"""Serializers of pending messages."""

from typing import Any

from rest_framework import serializers

from console.api.serializers import AnsweredSerializer, BodySerializer
from console.areas.deadletters.forms import ID_CHARS_MAX
from console.areas.messages.api import MessageRowSerializer
from console.gateway.pending.half import RESUMED_MAX


class _HeldMessageSerializer(serializers.Serializer[Any]):
    msg_id = serializers.CharField(source="ref.message.msg_id")
    offset_msg_id = serializers.CharField(source="ref.message.offset_msg_id")
    broker = serializers.CharField(source="ref.broker.name")
    topic = serializers.CharField(help_text="Topic that gets the message.")
    tags = serializers.CharField(source="ref.message.tags", allow_null=True)
    keys = serializers.ListField(child=serializers.CharField(), source="ref.message.keys")
    born_ms = serializers.IntegerField(source="ref.message.born_timestamp")
    stored_ms = serializers.IntegerField(source="ref.message.store_timestamp")
    size_bytes = serializers.IntegerField(source="ref.message.store_size")


class DelayedMessageSerializer(_HeldMessageSerializer):
    """An undelivered delayed message."""

    level = serializers.IntegerField()
    delay_ms = serializers.IntegerField()
    due_ms = serializers.IntegerField()
    retry_group = serializers.CharField(
        allow_null=True, help_text="Consumer group that retries the message; null for a send."
    )


class DelayLevelSerializer(serializers.Serializer[Any]):
    """Undelivered messages of a delay level on one broker."""

    broker = serializers.CharField()
    level = serializers.IntegerField()
    delay_ms = serializers.IntegerField()
    pending = serializers.IntegerField()


class TimerMessagesSerializer(serializers.Serializer[Any]):
    """Messages in the timer wheel of a RocketMQ 5 broker; they cannot be listed."""

    broker = serializers.CharField()
    count = serializers.IntegerField()


class CancellationSerializer(serializers.Serializer[Any]):
    """Whether delayed messages can be cancelled, and the reason when not."""

    available = serializers.BooleanField()
    reason = serializers.CharField()


class DelayedMessagePageSerializer(AnsweredSerializer):
    items = DelayedMessageSerializer(many=True)
    levels = DelayLevelSerializer(many=True)
    total = serializers.IntegerField(
        help_text="Pending messages of the level and the due times, matching or not."
    )
    scanned = serializers.IntegerField(help_text="Messages read for this page.")
    left = serializers.IntegerField(help_text="Pending messages after this page.")
    unreadable = serializers.IntegerField()
    next_cursor = serializers.CharField(
        allow_null=True,
        help_text="Cursor of later due times. A page can be short or empty and still have a "
        "cursor: the scan budget of one call was used up.",
    )
    timers = TimerMessagesSerializer(many=True)
    cancellation = CancellationSerializer()


class HalfMessageSerializer(_HeldMessageSerializer):
    """A half message of a transaction that has not ended."""

    producer_group = serializers.CharField()
    producers = serializers.IntegerField(
        allow_null=True, help_text="Connected producers of the group; null if unknown."
    )
    checks = serializers.IntegerField()
    checks_max = serializers.IntegerField(allow_null=True)
    next_check_ms = serializers.IntegerField(
        allow_null=True, help_text="Earliest time of the next check; null if unknown."
    )


class HalfMessagePageSerializer(AnsweredSerializer):
    items = HalfMessageSerializer(many=True)
    total = serializers.IntegerField()
    left_out = serializers.IntegerField(help_text="Pending half messages that were not read.")
    is_exact = serializers.BooleanField(
        help_text="False when unread op messages may have ended some of the messages."
    )
    next_cursor = serializers.CharField(allow_null=True)


class DiscardedHalfMessageSerializer(MessageRowSerializer):
    """A half message that the broker discarded after the last check."""

    real_topic = serializers.CharField()
    producer_group = serializers.CharField()
    checks = serializers.IntegerField()


class DiscardedHalfMessagePageSerializer(AnsweredSerializer):
    items = DiscardedHalfMessageSerializer(many=True)
    total = serializers.IntegerField()
    next_cursor = serializers.CharField(allow_null=True)


class ChecksRequestSerializer(BodySerializer):
    ids = serializers.ListField(
        child=serializers.CharField(max_length=ID_CHARS_MAX),
        min_length=1,
        max_length=RESUMED_MAX,
        help_text="offset_msg_id of each discarded half message.",
    )


class ResumptionSerializer(serializers.Serializer[Any]):
    """The outcome of one message; `error` is null after success."""

    id = serializers.CharField()
    result = serializers.ChoiceField(choices=["resumed", "planned", "failed"])
    error = serializers.CharField(allow_null=True)


class ResumptionsSerializer(serializers.Serializer[Any]):
    outcomes = ResumptionSerializer(many=True)
    resumed = serializers.IntegerField()
    failed = serializers.IntegerField()

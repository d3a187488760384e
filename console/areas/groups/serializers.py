"""Serializers of groups."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from console.api.serializers import AnsweredSerializer, BodySerializer
from console.areas.groups.forms import RETRIES_MAX, RETRY_QUEUES_MAX
from console.areas.groups.listing import GroupLine
from console.gateway.groups.changes import FIELDS, GroupSettings
from console.resources.labels_api import StoredLabelsField
from core_broker.errors import ClientError
from core_broker.message.topics import GROUP_BYTES_MAX, validate_group

LAG_HELP = "Messages stored but not yet consumed, including retries; null when unknown."
UNSEEN_HELP = "Further topics, whose names the permissions of the caller do not include."


class ProgressSerializer(serializers.Serializer[Any]):
    """Consume progress of a group over all queues."""

    lag = serializers.IntegerField(allow_null=True, help_text=LAG_HELP)
    retry_lag = serializers.IntegerField(help_text="Part of the lag in the retry topic.")
    rate = serializers.FloatField(allow_null=True, help_text="Messages consumed per second.")
    behind_since_ms = serializers.IntegerField(
        allow_null=True,
        help_text="Store time of the last consumed message, lowest over the queues.",
    )
    topics = serializers.ListField(
        child=serializers.CharField(), help_text="`***` for each topic in `unseen_topics`."
    )
    unseen_topics = serializers.IntegerField(
        help_text="Topics whose names the permissions of the caller do not include."
    )


class GroupNumbersSerializer(serializers.Serializer[Any]):
    """Metrics of a group; null means unknown."""

    lag = serializers.IntegerField(
        allow_null=True, help_text=f"{LAG_HELP} Null before the first committed offset."
    )
    lag_seconds = serializers.FloatField(
        allow_null=True, help_text="Age of the oldest unconsumed message, seconds."
    )
    pending_since_ms = serializers.IntegerField(
        allow_null=True, help_text="Store time of the oldest unconsumed message."
    )
    behind = serializers.BooleanField(
        help_text="True for lag older than a commit interval of consumers (5 s), or of unknown age."
    )
    retry_lag = serializers.IntegerField(help_text="Part of the lag in the retry topic.")
    rate = serializers.FloatField(
        allow_null=True, help_text="Messages consumed per second, last minute."
    )
    clients = serializers.IntegerField(allow_null=True, help_text="Connected consumers.")
    dead_letters = serializers.IntegerField(allow_null=True, help_text="Stored dead letters.")
    broadcasting = serializers.BooleanField(
        help_text="Broadcast consumption: clients keep their own offsets, unknown to brokers."
    )
    topics = serializers.ListField(child=serializers.CharField())
    unseen_topics = serializers.IntegerField(help_text=UNSEEN_HELP)


class GroupRowSerializer(serializers.Serializer[Any]):
    """A group on all brokers."""

    name = serializers.CharField()
    system = serializers.BooleanField()
    enabled = serializers.BooleanField(
        help_text="Consumption is enabled on all brokers of the group."
    )
    retry_max = serializers.IntegerField()
    brokers = serializers.ListField(child=serializers.CharField())
    drift = serializers.BooleanField(
        help_text="True when brokers have different settings for the group."
    )


class GroupLineSerializer(GroupRowSerializer):
    """A list entry. `numbers` is null when the group was deleted during the request."""

    numbers = GroupNumbersSerializer(allow_null=True)
    labels = StoredLabelsField()


def lines_body(lines: Sequence[GroupLine]) -> list[dict[str, Any]]:
    """The items of the list."""
    rows = GroupRowSerializer([line.row for line in lines], many=True).data
    return [{**row, "numbers": _numbers(line)} for row, line in zip(rows, lines, strict=True)]


def _numbers(line: GroupLine) -> dict[str, Any] | None:
    if line.numbers is None:
        return None
    return {**asdict(line.numbers), "lag_seconds": line.lag_seconds, "behind": line.behind}


class GroupPageSerializer(AnsweredSerializer):
    items = GroupLineSerializer(many=True)
    total = serializers.IntegerField()
    left_out = serializers.IntegerField(
        help_text="Groups without metrics; their position in the order is unknown."
    )
    next_cursor = serializers.CharField(allow_null=True)


class GroupConfigSerializer(serializers.Serializer[Any]):
    """Settings of a group on one broker, under RocketMQ's names."""

    broker = serializers.CharField()
    addr = serializers.CharField()
    consume_enable = serializers.BooleanField()
    consume_broadcast_enable = serializers.BooleanField()
    retry_max_times = serializers.IntegerField()
    retry_queue_nums = serializers.IntegerField()
    notify_consumer_ids_changed_enable = serializers.BooleanField()


class GroupQueueSerializer(serializers.Serializer[Any]):
    """Offsets of the group in one queue."""

    topic = serializers.CharField()
    broker = serializers.CharField()
    queue_id = serializers.IntegerField()
    broker_offset = serializers.IntegerField(allow_null=True)
    consumer_offset = serializers.IntegerField(allow_null=True)
    lag = serializers.IntegerField(allow_null=True)
    last_consumed_ms = serializers.IntegerField(allow_null=True)
    client = serializers.CharField(allow_null=True)


class ClientSerializer(serializers.Serializer[Any]):
    client_id = serializers.CharField()
    addr = serializers.CharField()
    language = serializers.CharField()
    version = serializers.CharField()
    brokers = serializers.ListField(child=serializers.CharField())


class SubscriptionSerializer(serializers.Serializer[Any]):
    topic = serializers.CharField()
    expression = serializers.CharField(source="sub_string")
    expression_type = serializers.CharField(allow_null=True)
    version_ms = serializers.IntegerField(source="sub_version")


class ClientListSerializer(AnsweredSerializer):
    """Connected clients. The last three fields are RocketMQ's constants, null without clients."""

    clients = ClientSerializer(many=True)
    subscriptions = SubscriptionSerializer(many=True)
    unseen_topics = serializers.IntegerField(help_text=UNSEEN_HELP)
    consume_type = serializers.CharField(allow_null=True)
    message_model = serializers.CharField(allow_null=True)
    consume_from_where = serializers.CharField(allow_null=True)


class GroupSerializer(AnsweredSerializer):
    """A group. The `ETag` header identifies the settings; send the value in `If-Match`."""

    name = serializers.CharField()
    labels = StoredLabelsField()
    progress = ProgressSerializer(allow_null=True)
    configs = GroupConfigSerializer(many=True)
    queues = GroupQueueSerializer(many=True)
    clients = ClientSerializer(many=True)


class GroupImpactSerializer(AnsweredSerializer):
    """Data and clients affected by a deletion; null means unknown."""

    brokers = serializers.ListField(child=serializers.CharField())
    clients = serializers.IntegerField()
    topics = serializers.ListField(child=serializers.CharField())
    unseen_topics = serializers.IntegerField(help_text=UNSEEN_HELP)
    lag = serializers.IntegerField(allow_null=True)
    retry_stored = serializers.IntegerField(allow_null=True)
    dead_letters = serializers.IntegerField(allow_null=True)
    protected = serializers.BooleanField()


class HeldQueueSerializer(serializers.Serializer[Any]):
    topic = serializers.CharField()
    broker = serializers.CharField()
    queue_id = serializers.IntegerField()
    commit_offset = serializers.IntegerField()
    cached_messages = serializers.IntegerField()
    dropped = serializers.BooleanField()
    last_pull_ms = serializers.IntegerField(allow_null=True)
    last_consume_ms = serializers.IntegerField(allow_null=True)


class RunningClientSerializer(AnsweredSerializer):
    """Running info of a consumer."""

    client = ClientSerializer()
    properties = serializers.DictField(child=serializers.CharField())
    queues = HeldQueueSerializer(many=True)
    stack = serializers.CharField(
        allow_null=True, help_text="Thread dump, if requested and supported by the client."
    )


class GroupChangeSerializer(BodySerializer):
    """Settings of a group. Omitted fields keep their values."""

    consume_enable = serializers.BooleanField(required=False)
    consume_broadcast_enable = serializers.BooleanField(required=False)
    notify_consumer_ids_changed_enable = serializers.BooleanField(required=False)
    retry_max_times = serializers.IntegerField(min_value=0, max_value=RETRIES_MAX, required=False)
    retry_queue_nums = serializers.IntegerField(
        min_value=1, max_value=RETRY_QUEUES_MAX, required=False
    )
    brokers = serializers.ListField(
        child=serializers.CharField(max_length=255),
        required=False,
        max_length=1_000,
        help_text="Brokers to change; all brokers if absent.",
    )

    def settings(self) -> GroupSettings:
        given = self.validated_data
        return GroupSettings(**{field: given.get(field) for field in FIELDS})


class GroupCreateSerializer(GroupChangeSerializer):
    """A new group. Defaults: RocketMQ's default settings, all brokers."""

    name = serializers.CharField(max_length=GROUP_BYTES_MAX)

    def validate_name(self, name: str) -> str:
        try:
            validate_group(name)
        except ClientError as wrong:
            raise serializers.ValidationError(str(wrong)) from wrong
        return name


class GroupPatchSerializer(GroupChangeSerializer):
    """At least one field besides `brokers`."""

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not set(attrs) - {"brokers"}:
            raise serializers.ValidationError({"": [_("Nothing to change.")]})
        return attrs

"""Serializers of topics."""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from console.api.serializers import AnsweredSerializer, BodySerializer
from console.areas.topics.listing import KINDS, TopicLine
from console.gateway.topics.changes import QUEUES_MAX, TopicSettings
from console.resources.labels_api import StoredLabelsField
from core_broker.errors import ClientError
from core_broker.message.topics import validate_topic

PERM_HELP = (
    "2 is write only, 4 is read only, 6 is read and write; add 1 to let new topics inherit it."
)
PERM_MAX = 7


class TopicNumbersSerializer(serializers.Serializer[Any]):
    stored = serializers.IntegerField(help_text="Messages in the store, not yet deleted.")
    total = serializers.IntegerField(
        help_text="Messages received since the topic was created, including deleted messages."
    )
    last_write_ms = serializers.IntegerField(allow_null=True)
    in_rate = serializers.FloatField(
        allow_null=True, help_text="Produce rate: messages per second, average of the last minute."
    )
    out_rate = serializers.FloatField(
        allow_null=True,
        help_text="Consume rate of all groups: messages per second, average of the last minute.",
    )
    groups = serializers.ListField(child=serializers.CharField())
    worst_lag = serializers.IntegerField(
        allow_null=True, help_text="Highest lag of a group, messages."
    )
    worst_group = serializers.CharField(allow_null=True)


class TopicRowSerializer(serializers.Serializer[Any]):
    """A topic on all brokers; `write_queues` and `read_queues` are sums over the brokers."""

    name = serializers.CharField()
    type = serializers.ChoiceField(choices=list(KINDS), source="kind")
    perm = serializers.IntegerField(
        allow_null=True, help_text=f"{PERM_HELP} Null where brokers differ."
    )
    write_queues = serializers.IntegerField()
    read_queues = serializers.IntegerField()
    order = serializers.BooleanField()
    brokers = serializers.ListField(child=serializers.CharField())
    drift = serializers.BooleanField(
        help_text="True when brokers have different settings for the topic."
    )
    unread_queues = serializers.IntegerField(
        help_text="Write queues beyond the read queues: no consumer reads them."
    )


class TopicLineSerializer(TopicRowSerializer):
    """A list entry. `numbers` is null when the topic was deleted during the request."""

    numbers = TopicNumbersSerializer(allow_null=True)
    labels = StoredLabelsField()


def lines_body(lines: Sequence[TopicLine]) -> list[dict[str, Any]]:
    """The items of the list."""
    rows = TopicRowSerializer([line.row for line in lines], many=True).data
    return [{**row, "numbers": _numbers(line)} for row, line in zip(rows, lines, strict=True)]


def _numbers(line: TopicLine) -> dict[str, Any] | None:
    found = line.numbers
    return None if found is None else {name: getattr(found, name) for name in NUMBERS}


NUMBERS = tuple(TopicNumbersSerializer().fields)


class TopicPageSerializer(AnsweredSerializer):
    items = TopicLineSerializer(many=True)
    total = serializers.IntegerField()
    left_out = serializers.IntegerField(
        help_text="Topics without metrics; their position in the order is unknown."
    )
    next_cursor = serializers.CharField(allow_null=True)


class TopicConfigSerializer(serializers.Serializer[Any]):
    """A topic's configuration on one broker."""

    broker = serializers.CharField()
    addr = serializers.CharField()
    write_queues = serializers.IntegerField()
    read_queues = serializers.IntegerField()
    perm = serializers.IntegerField(help_text=PERM_HELP)
    order = serializers.BooleanField()
    attributes = serializers.DictField(child=serializers.CharField(), allow_null=True)


class TopicQueueSerializer(serializers.Serializer[Any]):
    broker = serializers.CharField()
    queue_id = serializers.IntegerField()
    offset_min = serializers.IntegerField()
    offset_max = serializers.IntegerField(help_text="Offset of the next message.")
    stored = serializers.IntegerField()
    last_write_ms = serializers.IntegerField(allow_null=True)
    unread = serializers.BooleanField(
        help_text="Beyond the read queues of the broker: no consumer reads the queue."
    )


class TopicSerializer(AnsweredSerializer, TopicRowSerializer):
    """A topic. The `ETag` header identifies the configuration; send the value in `If-Match`."""

    numbers = TopicNumbersSerializer()
    labels = StoredLabelsField()
    configs = TopicConfigSerializer(many=True)
    queues = TopicQueueSerializer(many=True)


class TopicImpactSerializer(AnsweredSerializer):
    """Data and clients affected by a deletion."""

    numbers = TopicNumbersSerializer()
    brokers = serializers.ListField(child=serializers.CharField())
    queues = serializers.IntegerField()
    online_groups = serializers.DictField(
        child=serializers.IntegerField(), help_text="Connected clients by group."
    )
    protected = serializers.BooleanField()


class TopicChangeSerializer(BodySerializer):
    """Settings of a topic. Omitted fields keep their values."""

    write_queues = serializers.IntegerField(min_value=1, max_value=QUEUES_MAX, required=False)
    read_queues = serializers.IntegerField(min_value=1, max_value=QUEUES_MAX, required=False)
    perm = serializers.IntegerField(
        min_value=0, max_value=PERM_MAX, required=False, help_text=PERM_HELP
    )
    order = serializers.BooleanField(required=False)
    brokers = serializers.ListField(
        child=serializers.CharField(max_length=255),
        required=False,
        max_length=1_000,
        help_text="Brokers to change; all brokers if absent.",
    )

    def settings(self) -> TopicSettings:
        given = self.validated_data
        return TopicSettings(
            read_queues=given.get("read_queues"),
            write_queues=given.get("write_queues"),
            perm=given.get("perm"),
            order=given.get("order"),
        )


class TopicCreateSerializer(TopicChangeSerializer):
    """A new topic. Defaults: 8 write and 8 read queues, permission 6, not ordered, all brokers."""

    name = serializers.CharField(max_length=127)

    def validate_name(self, name: str) -> str:
        try:
            validate_topic(name)
        except ClientError as wrong:
            raise serializers.ValidationError(str(wrong)) from wrong
        return name


class TopicPatchSerializer(TopicChangeSerializer):
    """At least one field besides `brokers`."""

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not set(attrs) - {"brokers", "names", "dry_run"}:
            raise serializers.ValidationError({"": [_("Nothing to change.")]})
        return attrs

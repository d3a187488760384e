"""How topics look in the API."""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from console.api.serializers import AnsweredSerializer, BodySerializer
from console.areas.topics.listing import KINDS, TopicLine
from console.gateway.topics.changes import QUEUES_MAX, TopicSettings
from core_broker.errors import ClientError
from core_broker.message.topics import validate_topic

PERM_HELP = "2 is write only, 4 is read only, 6 is both; 1 more lets new topics inherit it."
PERM_MAX = 7


class TopicNumbersSerializer(serializers.Serializer[Any]):
    stored = serializers.IntegerField(help_text="Messages that can still be read.")
    total = serializers.IntegerField(help_text="Messages ever received, deleted ones among them.")
    last_write_ms = serializers.IntegerField(allow_null=True)
    in_rate = serializers.FloatField(allow_null=True, help_text="Per second, last minute.")
    out_rate = serializers.FloatField(
        allow_null=True, help_text="To all groups together, per second, last minute."
    )
    groups = serializers.ListField(child=serializers.CharField())
    worst_lag = serializers.IntegerField(
        allow_null=True, help_text="Messages before the group that is furthest behind."
    )
    worst_group = serializers.CharField(allow_null=True)


class TopicRowSerializer(serializers.Serializer[Any]):
    """A topic over all its brokers; queues are added up."""

    name = serializers.CharField()
    type = serializers.ChoiceField(choices=list(KINDS), source="kind")
    perm = serializers.IntegerField(
        allow_null=True, help_text=f"{PERM_HELP} Null where brokers differ."
    )
    write_queues = serializers.IntegerField()
    read_queues = serializers.IntegerField()
    order = serializers.BooleanField()
    brokers = serializers.ListField(child=serializers.CharField())
    drift = serializers.BooleanField(help_text="Brokers have different settings.")


class TopicLineSerializer(TopicRowSerializer):
    """A topic of a list. `numbers` is null for a topic that was deleted a moment ago."""

    numbers = TopicNumbersSerializer(allow_null=True)


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
        help_text="Topics whose numbers were not asked for, so that their place is not sure."
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
    offset_max = serializers.IntegerField(help_text="The offset the next message will get.")
    stored = serializers.IntegerField()
    last_write_ms = serializers.IntegerField(allow_null=True)


class TopicSerializer(AnsweredSerializer, TopicRowSerializer):
    """One topic. The header `ETag` names its configuration; send it back in `If-Match`."""

    numbers = TopicNumbersSerializer()
    configs = TopicConfigSerializer(many=True)
    queues = TopicQueueSerializer(many=True)


class TopicImpactSerializer(AnsweredSerializer):
    """What a deletion would take with it."""

    numbers = TopicNumbersSerializer()
    brokers = serializers.ListField(child=serializers.CharField())
    queues = serializers.IntegerField()
    online_groups = serializers.DictField(
        child=serializers.IntegerField(), help_text="Connected clients by group."
    )
    protected = serializers.BooleanField()


class TopicChangeSerializer(BodySerializer):
    """What can be set. Fields that are left out stay as they are."""

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
        help_text="Only these brokers; all when left out.",
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
    """A new topic. Left out: 8 queues each way, permission 6, not ordered, all brokers."""

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

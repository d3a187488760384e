"""Serializers of the topology."""

from typing import Any

from rest_framework import serializers

from console.api.serializers import AnsweredSerializer
from console.gateway.topology.model import NODE_KINDS

KEY_HELP = "Kind and name, like topic:orders."


class TopologyNodeSerializer(serializers.Serializer[Any]):
    """An object of the cluster. Null: unknown, or the kind has no such value."""

    key = serializers.CharField(help_text=KEY_HELP)
    kind = serializers.ChoiceField(choices=NODE_KINDS)
    name = serializers.CharField(help_text="`*` for a node that stands for `count` objects.")
    state = serializers.ChoiceField(
        choices=["up", "partly", "down", "offline", "missing", "unknown"],
        help_text="offline: no client is connected. missing: clients name a topic or group that "
        "no broker has.",
    )
    system = serializers.BooleanField()
    in_rate = serializers.FloatField(allow_null=True, help_text="Messages produced per second.")
    out_rate = serializers.FloatField(allow_null=True, help_text="Messages consumed per second.")
    lag = serializers.IntegerField(
        allow_null=True, help_text="Unconsumed messages; of a topic, the highest lag of a group."
    )
    behind = serializers.BooleanField(help_text="The lag is older than a commit interval.")
    dead_letters = serializers.IntegerField(allow_null=True)
    clients = serializers.IntegerField(allow_null=True)
    stale = serializers.BooleanField(help_text="A broker is down; values are the last known ones.")
    count = serializers.IntegerField(help_text="Number of objects; more than 1 when collapsed.")


class TopologyEdgeSerializer(serializers.Serializer[Any]):
    """A connection. Null: unknown, or the kind has no such value."""

    kind = serializers.ChoiceField(
        choices=["registration", "connection", "storage", "consumption", "dead_letters"],
        help_text="registration: name server to broker. connection: producer group to broker. "
        "storage: broker to topic. consumption: topic to consumer group. dead_letters: consumer "
        "group to its DLQ topic.",
    )
    from_key = serializers.CharField(source="source", help_text=KEY_HELP)
    to_key = serializers.CharField(source="target", help_text=KEY_HELP)
    rate = serializers.FloatField(allow_null=True, help_text="Messages per second.")
    lag = serializers.IntegerField(allow_null=True)
    clients = serializers.IntegerField(allow_null=True)
    count = serializers.IntegerField(allow_null=True, help_text="Messages in the DLQ topic.")
    behind = serializers.BooleanField()
    down = serializers.BooleanField(help_text="The broker is down, or no broker has the topic.")
    stale = serializers.BooleanField()


class TopologySerializer(AnsweredSerializer):
    """The shown part of a topology."""

    nodes = TopologyNodeSerializer(many=True)
    edges = TopologyEdgeSerializer(many=True)
    nodes_left_out = serializers.IntegerField(help_text="Objects beyond `limit`.")
    edges_left_out = serializers.IntegerField(help_text="Connections beyond the maximum.")
    system_hidden = serializers.IntegerField(help_text="Hidden system objects.")
    retry_hidden = serializers.IntegerField(help_text="Hidden retry and DLQ topics.")
    unmeasured = serializers.IntegerField(
        help_text="Topics and groups without metrics: their brokers answer for one per request."
    )
    clients_left_out = serializers.IntegerField(
        help_text="Consumer groups without a request for clients."
    )
    complete = serializers.BooleanField(
        help_text="false: no broker has answered; topics and groups are unknown."
    )

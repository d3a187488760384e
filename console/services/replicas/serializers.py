"""Serializers of replica sets."""

from typing import Any

from rest_framework import serializers

from console.api.serializers import AnsweredSerializer, BodySerializer
from console.services.replicas.models import Cause

#: Largest id of a replica: a 64-bit number.
ID_MAX = 2**63 - 1


class EpochSerializer(serializers.Serializer[Any]):
    """An epoch of a commit log."""

    number = serializers.IntegerField()
    start_offset = serializers.IntegerField()
    end_offset = serializers.IntegerField()
    began_ms = serializers.IntegerField(
        allow_null=True,
        help_text="Store time of the first message of the epoch in the master's log; null: "
        "unknown, or the epoch has no message.",
    )


class ReplicaSerializer(serializers.Serializer[Any]):
    """A broker process of a set. Null: unknown."""

    id = serializers.IntegerField(
        source="number",
        allow_null=True,
        help_text="Id at the controllers; without controllers the broker id.",
    )
    addr = serializers.CharField()
    role = serializers.ChoiceField(choices=["master", "slave", "unknown"])
    state = serializers.ChoiceField(
        choices=["up", "down", "unregistered"],
        help_text="unregistered: the broker answers, and no name server lists it.",
    )
    reason = serializers.CharField(allow_null=True)
    version = serializers.CharField(allow_null=True)
    started_ms = serializers.IntegerField(allow_null=True)
    alive = serializers.BooleanField(
        source="is_alive",
        allow_null=True,
        help_text="Whether the controllers receive heartbeats.",
    )
    in_sync = serializers.BooleanField(
        source="is_in_sync", allow_null=True, help_text="Member of the sync-state set."
    )
    end_offset = serializers.IntegerField(allow_null=True, help_text="End of the commit log.")
    lag_bytes = serializers.IntegerField(
        allow_null=True,
        help_text="Bytes of the master's log behind `end_offset`, an upper bound; null for the "
        "master.",
    )
    lag_ms = serializers.IntegerField(
        allow_null=True, help_text="Age of the oldest message that the slave lacks."
    )
    epochs = EpochSerializer(many=True, allow_null=True)


class ReplicaSetSerializer(serializers.Serializer[Any]):
    """The processes of one broker name, the master first. Null: unknown."""

    name = serializers.CharField()
    cluster_name = serializers.CharField()
    mode = serializers.ChoiceField(
        choices=["controllers", "fixed", "single"],
        help_text="controllers: controllers choose the master. fixed: no controllers; the "
        "brokers' settings or a DLedger group do. single: one process without controllers.",
    )
    has_master = serializers.BooleanField(help_text="Whether a master answers.")
    master_epoch = serializers.IntegerField(allow_null=True)
    sync_state_set_epoch = serializers.IntegerField(allow_null=True)
    confirm_offset = serializers.IntegerField(
        allow_null=True, help_text="End of the messages that the whole sync-state set has."
    )
    connected = serializers.IntegerField(
        allow_null=True, help_text="Connections of slaves to the master."
    )
    replicas = ReplicaSerializer(many=True)


class ReplicaSetListSerializer(AnsweredSerializer):
    items = ReplicaSetSerializer(many=True)


class ReplicaSetAnswerSerializer(AnsweredSerializer):
    replica_set = ReplicaSetSerializer()


class ControllerSerializer(serializers.Serializer[Any]):
    """A controller as its own answer describes it."""

    addr = serializers.CharField()
    name = serializers.CharField(allow_null=True)
    role = serializers.ChoiceField(choices=["leader", "follower", "unknown"])
    leader_addr = serializers.CharField(
        allow_null=True, help_text="The leader as this controller knows it."
    )
    failure = serializers.CharField(allow_null=True, help_text="Reason of a missing answer.")


class ControllerGroupSerializer(serializers.Serializer[Any]):
    """The controllers of some replica sets."""

    controllers = ControllerSerializer(many=True)
    leader = serializers.CharField(
        source="leader.addr",
        allow_null=True,
        default=None,
        help_text="The controller that calls itself the leader; null: no majority runs.",
    )
    broker_names = serializers.ListField(child=serializers.CharField())


class ControllerListSerializer(AnsweredSerializer):
    items = ControllerGroupSerializer(many=True)


class RoleChangeSerializer(serializers.Serializer[Any]):
    """A set has this master from `at_ms` on; the worker looks every ten seconds."""

    at_ms = serializers.IntegerField()
    id = serializers.IntegerField(source="number", allow_null=True)
    addr = serializers.CharField(allow_blank=True, help_text="Empty: no master answered.")
    epoch = serializers.IntegerField(allow_null=True)
    previous_id = serializers.IntegerField(source="previous_number", allow_null=True)
    previous_addr = serializers.CharField(allow_blank=True)
    previous_epoch = serializers.IntegerField(allow_null=True)
    unseen = serializers.IntegerField(help_text="Elections between the two epochs.")
    cause = serializers.ChoiceField(choices=Cause.values)
    cause_text = serializers.CharField()
    username = serializers.CharField(allow_blank=True, help_text="User of an election.")


class WatchedSerializer(serializers.Serializer[Any]):
    """A time without a gap between observations."""

    begin_ms = serializers.IntegerField()
    end_ms = serializers.IntegerField()


class RoleChangeListSerializer(serializers.Serializer[Any]):
    """Role changes, newest first."""

    items = RoleChangeSerializer(many=True)
    total = serializers.IntegerField()
    watched_since_ms = serializers.IntegerField(
        allow_null=True, help_text="Begin of the record; null: nothing was observed yet."
    )
    watched = WatchedSerializer(many=True)


class ElectionPostSerializer(BodySerializer):
    id = serializers.IntegerField(
        min_value=0, max_value=ID_MAX, help_text="Id of the replica that becomes the master."
    )


class MasterSerializer(serializers.Serializer[Any]):
    """A master and its epoch."""

    id = serializers.IntegerField(allow_null=True)
    addr = serializers.CharField(allow_null=True)
    epoch = serializers.IntegerField(allow_null=True)


class ElectionSerializer(serializers.Serializer[Any]):
    """The masters before and after an election. The epoch after a dry run is null."""

    name = serializers.CharField()
    dry_run = serializers.BooleanField()
    in_sync = serializers.BooleanField(allow_null=True)
    lag_bytes = serializers.IntegerField(
        allow_null=True, help_text="Bytes that the replica lacked before the election."
    )
    before = MasterSerializer()
    after = MasterSerializer()

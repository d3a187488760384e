"""Serializers of jobs: requests and responses."""

from typing import Any

from rest_framework import serializers

from console.api.serializers import BodySerializer
from console.services.jobs import kinds
from console.services.jobs.models import Origin
from console.services.jobs.states import State


class JobSerializer(serializers.Serializer[Any]):
    """A job. Times of future events are null."""

    id = serializers.IntegerField()
    cluster = serializers.CharField()
    kind = serializers.CharField()
    scope = serializers.CharField(
        help_text="Subject, such as a group; empty for the whole cluster."
    )
    state = serializers.ChoiceField(choices=State.choices)
    origin = serializers.ChoiceField(choices=Origin.choices)
    started_by = serializers.CharField(allow_null=True, help_text="Null for the schedule.")
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    cancel_requested = serializers.BooleanField()
    stage = serializers.CharField()
    stage_started_at = serializers.DateTimeField(
        allow_null=True, help_text="Start of the current or last stage."
    )
    percent = serializers.FloatField()
    done = serializers.IntegerField(help_text="Units done; the kind names the unit.")
    total = serializers.IntegerField(
        allow_null=True, help_text="Units in total; null when unknown."
    )
    rate = serializers.FloatField(allow_null=True, help_text="Units per second of a running job.")
    detail = serializers.CharField(help_text="Current position, for display.")
    spark_ui = serializers.CharField(help_text="URL of the Spark UI during the run.")
    inputs = serializers.DictField()
    outputs = serializers.DictField()
    error = serializers.CharField()


class JobDetailSerializer(JobSerializer):
    log_tail = serializers.CharField(help_text="End of the program log.")


class JobPageSerializer(serializers.Serializer[Any]):
    items = JobSerializer(many=True)
    total = serializers.IntegerField()
    next_cursor = serializers.CharField(allow_null=True)


class JobRequestSerializer(BodySerializer):
    kind = serializers.CharField(max_length=kinds.NAME_CHARS_MAX, default="ingest")


class JobKindSerializer(serializers.Serializer[Any]):
    """A job kind, in the language of the request."""

    name = serializers.CharField()
    title = serializers.CharField()
    about = serializers.CharField()
    unit = serializers.CharField()
    need = serializers.CharField(source="need.value", help_text="Required permission.")
    can_pause = serializers.BooleanField()
    can_continue = serializers.BooleanField()
    by_hand = serializers.BooleanField(help_text="Whether POST …/jobs starts it.")


class JobKindListSerializer(serializers.Serializer[Any]):
    items = JobKindSerializer(many=True)


class JobFileSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    size_bytes = serializers.IntegerField()
    written_ms = serializers.IntegerField()
    expires_ms = serializers.IntegerField()


class JobFileListSerializer(serializers.Serializer[Any]):
    items = JobFileSerializer(many=True)

"""Serializers of dead letters: requests and responses."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from console.api.serializers import AnsweredSerializer, BodySerializer
from console.areas.deadletters.forms import ID_CHARS_MAX, RATE_DEFAULT, RATE_MAX
from console.areas.deadletters.replays import RESULTS
from console.areas.deadletters.states import DeadLetter, DeadLetterState
from console.areas.messages.api import MessageRowSerializer
from console.areas.messages.forms import SEARCH_CHARS_MAX, TOPIC_CHARS_MAX
from console.gateway.dead_letters.causes import Cause
from console.gateway.dead_letters.edits import (
    BODY_BYTES_MAX,
    KEYS_CHARS_MAX,
    PROPERTIES_MAX,
    PROPERTY_CHARS_MAX,
    TAGS_CHARS_MAX,
)
from console.gateway.dead_letters.resend import RESEND_MESSAGES_MAX, Result, Target
from console.services.jobs.states import State

TIMESTAMP_MAX = 2**53
#: Maximum length of a Base64 body, characters: 4 per 3 bytes.
BASE64_CHARS_MAX = BODY_BYTES_MAX * 4 // 3 + 4


class CauseSerializer(serializers.Serializer[Any]):
    """How the last delivery of the newest dead letter ended."""

    cause = serializers.ChoiceField(choices=[each.value for each in Cause])
    deliveries = serializers.IntegerField()
    msg_id = serializers.CharField()
    offset_msg_id = serializers.CharField()
    died_ms = serializers.IntegerField()


class DeadLetterGroupSerializer(serializers.Serializer[Any]):
    """A group with dead letters. Unknown counts and times are null."""

    group = serializers.CharField()
    topic = serializers.CharField()
    perm = serializers.IntegerField()
    count = serializers.IntegerField(allow_null=True)
    last_hour = serializers.IntegerField(
        allow_null=True, help_text="Dead letters of the last hour, by store time."
    )
    oldest_ms = serializers.IntegerField(allow_null=True)
    newest_ms = serializers.IntegerField(allow_null=True)
    read_ms = serializers.IntegerField(
        allow_null=True, help_text="Time when the oldest of the counts was read from a broker."
    )
    dealt_with = serializers.IntegerField(
        help_text="Dead letters resent or discarded from this console."
    )
    clients = serializers.IntegerField(allow_null=True, help_text="Consumers online.")
    why = CauseSerializer(allow_null=True)


class DeadLetterGroupsSerializer(AnsweredSerializer):
    items = DeadLetterGroupSerializer(many=True)
    total = serializers.IntegerField(help_text="Dead letters of all groups, as far as known.")


class DeadLetterGroupAnswerSerializer(DeadLetterGroupSerializer, AnsweredSerializer):
    """One group with dead letters, and the time of the query."""


class DeadLetterSerializer(MessageRowSerializer):
    """A dead letter. A resend takes the offset_msg_id as `id`."""

    origin_topic = serializers.SerializerMethodField()
    state = serializers.SerializerMethodField()
    resent_at = serializers.SerializerMethodField()
    discarded_at = serializers.SerializerMethodField()

    def get_origin_topic(self, letter: DeadLetter) -> str:
        return letter.origin

    @extend_schema_field(serializers.ChoiceField(choices=[each.value for each in DeadLetterState]))
    def get_state(self, letter: DeadLetter) -> str:
        return letter.state.value

    @extend_schema_field(OpenApiTypes.DATETIME)
    def get_resent_at(self, letter: DeadLetter) -> str | None:
        return letter.resent.at.isoformat() if letter.resent else None

    @extend_schema_field(OpenApiTypes.DATETIME)
    def get_discarded_at(self, letter: DeadLetter) -> str | None:
        return letter.discard.at.isoformat() if letter.discard else None

    def to_representation(self, instance: DeadLetter) -> dict[str, Any]:
        row: dict[str, Any] = dict(MessageRowSerializer(instance.ref).data)
        for name in ("origin_topic", "state", "resent_at", "discarded_at"):
            row[name] = getattr(self, f"get_{name}")(instance)
        return row


class DeadLetterPageSerializer(AnsweredSerializer):
    items = DeadLetterSerializer(many=True)
    total = serializers.IntegerField(help_text="Dead letters in the time range, matching or not.")
    scanned = serializers.IntegerField(
        help_text="Messages read for this page; a next_cursor marks unread messages."
    )
    unreadable = serializers.IntegerField()
    next_cursor = serializers.CharField(allow_null=True)


class IdsField(serializers.ListField):
    """Offset ids of dead letters."""

    child = serializers.CharField(max_length=ID_CHARS_MAX)


class IdsSerializer(BodySerializer):
    ids = IdsField(
        min_length=1,
        max_length=RESEND_MESSAGES_MAX,
        help_text="offset_msg_id of each dead letter.",
    )


class FilterSerializer(BodySerializer):
    """Filter of dead letters; all set fields must match. Empty: all dead letters."""

    begin_ms = serializers.IntegerField(required=False, min_value=0, max_value=TIMESTAMP_MAX)
    end_ms = serializers.IntegerField(required=False, min_value=0, max_value=TIMESTAMP_MAX)
    key = serializers.CharField(
        required=False,
        max_length=SEARCH_CHARS_MAX,
        help_text="A message key or the message id.",
    )
    tag = serializers.CharField(required=False, max_length=TAGS_CHARS_MAX)
    topic = serializers.CharField(
        required=False, max_length=TOPIC_CHARS_MAX, help_text="Original topic."
    )
    text = serializers.CharField(
        required=False,
        max_length=SEARCH_CHARS_MAX,
        help_text="Text in the body or a property; letter case is ignored.",
    )
    state = serializers.ChoiceField(
        required=False, choices=[each.value for each in DeadLetterState]
    )


class EditSerializer(BodySerializer):
    """Edited fields; absent fields stay unchanged."""

    body = serializers.CharField(
        required=False, allow_blank=True, trim_whitespace=False, max_length=BODY_BYTES_MAX
    )
    body_base64 = serializers.CharField(
        required=False, allow_blank=True, max_length=BASE64_CHARS_MAX
    )
    tags = serializers.CharField(required=False, allow_blank=True, max_length=TAGS_CHARS_MAX)
    keys = serializers.ListField(
        required=False, child=serializers.CharField(max_length=KEYS_CHARS_MAX), max_length=64
    )
    properties = serializers.DictField(
        required=False,
        child=serializers.CharField(
            allow_blank=True, trim_whitespace=False, max_length=PROPERTY_CHARS_MAX
        ),
    )
    remove = serializers.ListField(
        required=False,
        child=serializers.CharField(max_length=SEARCH_CHARS_MAX),
        max_length=PROPERTIES_MAX,
        help_text="Names of properties to remove.",
    )


class PlanSerializer(BodySerializer):
    """Target and edit of a resend."""

    target = serializers.ChoiceField(choices=[each.value for each in Target], default=Target.RETRY)
    topic = serializers.CharField(
        required=False, max_length=TOPIC_CHARS_MAX, help_text="The topic of target `topic`."
    )
    edit = EditSerializer(required=False)
    again = serializers.BooleanField(
        default=False, help_text="Include already resent and discarded messages."
    )


class ResendRequestSerializer(PlanSerializer):
    """Dead letters by `ids` or by `filter`."""

    ids = IdsField(
        required=False,
        min_length=1,
        max_length=RESEND_MESSAGES_MAX,
        help_text="offset_msg_id of each dead letter.",
    )
    filter = FilterSerializer(required=False)


class ReplayRequestSerializer(PlanSerializer):
    filter = FilterSerializer(required=False)
    rate = serializers.IntegerField(
        default=RATE_DEFAULT, min_value=1, max_value=RATE_MAX, help_text="Messages per second."
    )


class ResendOutcomeSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    result = serializers.ChoiceField(choices=[each.value for each in Result])
    reason = serializers.CharField()
    msg_id = serializers.CharField()
    topic = serializers.CharField()
    new_offset_msg_id = serializers.CharField()


class ResendAnswerSerializer(serializers.Serializer[Any]):
    """One outcome per dead letter. `matched` is the sum of sent, failed, skipped and planned;
    `planned` is set by a dry run only."""

    dry_run = serializers.BooleanField()
    matched = serializers.IntegerField()
    sent = serializers.IntegerField()
    failed = serializers.IntegerField()
    skipped = serializers.IntegerField()
    planned = serializers.IntegerField()
    outcomes = ResendOutcomeSerializer(many=True)


class DiscardAnswerSerializer(serializers.Serializer[Any]):
    """Counts: changed, already in the state, and unknown to the group."""

    done = serializers.IntegerField()
    skipped = serializers.IntegerField()
    failed = serializers.IntegerField()


class ReplayCountSerializer(serializers.Serializer[Any]):
    """The result of a dry run."""

    matched = serializers.IntegerField()
    scanned = serializers.IntegerField()
    is_whole = serializers.BooleanField(
        help_text="False when the scan limit of a dry run was reached."
    )


class ReplaySerializer(serializers.Serializer[Any]):
    """One replay. The job of the replay can be paused, resumed, cancelled, and continued after a
    failure."""

    id = serializers.IntegerField()
    group = serializers.CharField()
    wish = serializers.DictField(help_text="Request parameters.")
    rate = serializers.IntegerField()
    total = serializers.IntegerField(help_text="Dead letters to scan.")
    looked_at = serializers.IntegerField()
    matched = serializers.IntegerField()
    sent = serializers.IntegerField()
    failed = serializers.IntegerField()
    skipped = serializers.IntegerField()
    by = serializers.CharField(allow_null=True)
    at = serializers.DateTimeField()
    job = serializers.IntegerField(
        allow_null=True, help_text="The newest job; null after its deletion."
    )
    state = serializers.ChoiceField(choices=State.choices, allow_null=True)


class ReplayListSerializer(serializers.Serializer[Any]):
    items = ReplaySerializer(many=True)


class ReplayOutcomeSerializer(serializers.Serializer[Any]):
    """The outcome of one dead letter of a replay."""

    offset_msg_id = serializers.CharField()
    msg_id = serializers.CharField()
    result = serializers.ChoiceField(choices=[*RESULTS, "sending"])
    reason = serializers.CharField()
    topic = serializers.CharField()
    new_offset_msg_id = serializers.CharField()
    at = serializers.DateTimeField()


class ReplayOutcomesSerializer(serializers.Serializer[Any]):
    items = ReplayOutcomeSerializer(many=True)
    next_cursor = serializers.CharField(allow_null=True)

"""REST resource that sends messages."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.flags import DRY_RUN, read_flag
from console.api.serializers import BodySerializer
from console.areas.messages.api import MessageList
from console.areas.messages.drafts import (
    BODY_CHARS_MAX,
    BODY_ENCODINGS,
    KEYS_CHARS_MAX,
    NAME_CHARS_MAX,
    PROPERTIES_CHARS_MAX,
    draft_of,
    read_body,
)
from console.areas.messages.forms import QUEUE_CHARS_MAX, TOPIC_CHARS_MAX
from console.areas.messages.send_page import audit_summary
from console.audit.recording import audited
from console.gateway.messages.send import (
    COUNT_MAX,
    PRODUCER_GROUP,
    PROPERTIES_MAX,
    MessageType,
    TransactionOutcome,
    send,
)

DELAY_LEVEL_MAX = 200
KEYS_MAX = 64


class DraftSerializer(BodySerializer):
    """A message to send. Fields of other message types are ignored."""

    topic = serializers.CharField(max_length=TOPIC_CHARS_MAX)
    type = serializers.ChoiceField(
        choices=[kind.value for kind in MessageType], default=MessageType.NORMAL.value
    )
    body = serializers.CharField(max_length=BODY_CHARS_MAX, trim_whitespace=False)
    body_encoding = serializers.ChoiceField(choices=list(BODY_ENCODINGS), default="text")
    tags = serializers.CharField(max_length=NAME_CHARS_MAX, default="", allow_blank=True)
    keys = serializers.ListField(
        child=serializers.RegexField(r"^\S+$", max_length=KEYS_CHARS_MAX),
        max_length=KEYS_MAX,
        default=list,
        help_text="Keys without spaces: RocketMQ stores keys separated by spaces.",
    )
    properties = serializers.DictField(
        child=serializers.CharField(max_length=PROPERTIES_CHARS_MAX), default=dict
    )
    queue = serializers.CharField(
        max_length=QUEUE_CHARS_MAX, default="", allow_blank=True, help_text="`broker-a:3`"
    )
    delay_level = serializers.IntegerField(min_value=0, max_value=DELAY_LEVEL_MAX, default=0)
    deliver_ms = serializers.IntegerField(
        min_value=0,
        max_value=2**53,
        default=None,
        allow_null=True,
        help_text="Delivery time, milliseconds since the epoch; requires RocketMQ 5 brokers.",
    )
    message_group = serializers.CharField(max_length=NAME_CHARS_MAX, default="", allow_blank=True)
    outcome = serializers.ChoiceField(
        choices=[outcome.value for outcome in TransactionOutcome],
        default=TransactionOutcome.COMMIT.value,
    )
    producer_group = serializers.CharField(max_length=NAME_CHARS_MAX, default=PRODUCER_GROUP)
    count = serializers.IntegerField(min_value=1, max_value=COUNT_MAX, default=1)
    trace = serializers.BooleanField(default=False)

    def validate_properties(self, properties: dict[str, str]) -> dict[str, str]:
        if len(properties) > PROPERTIES_MAX:
            raise ValidationError(f"At most {PROPERTIES_MAX} properties.")
        return properties


class SentSerializer(serializers.Serializer[Any]):
    """A stored message."""

    msg_id = serializers.CharField()
    offset_msg_id = serializers.CharField(
        help_text="Empty when the broker returned no id. Delayed and transactional messages get "
        "another id on delivery."
    )
    queue = serializers.CharField()
    queue_offset = serializers.IntegerField()
    status = serializers.CharField()


class SentListSerializer(serializers.Serializer[Any]):
    items = SentSerializer(many=True)


class Messages(MessageList):
    """List of messages; POST sends messages."""

    actions = {"post": "message.send"}

    @extend_schema(
        parameters=[DRY_RUN],
        request=DraftSerializer,
        responses={200: SentListSerializer, 201: SentListSerializer},
        examples=[
            OpenApiExample(
                "in order",
                {
                    "topic": "orders",
                    "type": "fifo",
                    "message_group": "order-7",
                    "body": '{"order": 7}',
                    "keys": ["order-7"],
                },
                request_only=True,
            )
        ],
    )
    def post(self, request: Request, cluster: str) -> Response:
        """Send a message, once or several times.

        With `dry_run`, the message is checked against the topic and its queues and nothing is sent:
        status 200 with an empty list.
        """
        serializer = DraftSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        fields = serializer.validated_data
        try:
            body = read_body(fields["body"], fields["body_encoding"])
        except ValueError as wrong:
            raise ValidationError({"body": [str(wrong)]}) from wrong
        draft = draft_of(fields, body=body, keys=fields["keys"])
        if read_flag(request, "dry_run"):
            self.cluster.do(send, draft, dry_run=True)
            return Response({"items": []})
        with audited(request, "message.send", cluster=cluster, target=draft.topic) as entry:
            sent = self.cluster.do(send, draft)
            entry.after = audit_summary(cluster, draft, sent)
        return Response({"items": SentSerializer(sent, many=True).data}, status.HTTP_201_CREATED)

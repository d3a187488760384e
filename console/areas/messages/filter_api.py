"""REST resource that tests a filter on stored messages."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.serializers import AnsweredSerializer, BodySerializer
from console.api.views import ClusterResource, told_with
from console.areas.messages.forms import TOPIC_CHARS_MAX
from console.frame.access import Need, needs
from console.gateway.messages.browse import browse
from console.gateway.messages.filters import (
    BODY_CHARS_MAX,
    SQL_CHARS_MAX,
    TAGS_CHARS_MAX,
    BodyTest,
    FilterError,
    MessageFilter,
)
from console.services.schemas.stored import decoder_for

SAMPLE_MESSAGES_MAX = 200
SAMPLE_MESSAGES = 100


class FilterTestSerializer(BodySerializer):
    """A filter, and the topic for the test."""

    topic = serializers.CharField(max_length=TOPIC_CHARS_MAX)
    sample = serializers.IntegerField(
        min_value=1,
        max_value=SAMPLE_MESSAGES_MAX,
        default=SAMPLE_MESSAGES,
        help_text="Number of newest messages to test.",
    )
    tags = serializers.CharField(max_length=TAGS_CHARS_MAX, default="", allow_blank=True)
    sql = serializers.CharField(max_length=SQL_CHARS_MAX, default="", allow_blank=True)
    body = serializers.CharField(max_length=BODY_CHARS_MAX, default="", allow_blank=True)
    body_test = serializers.ChoiceField(
        choices=[test.value for test in BodyTest], default=BodyTest.TEXT.value
    )


class MatchSerializer(serializers.Serializer[Any]):
    """Result for a message of the sample."""

    msg_id = serializers.CharField()
    offset_msg_id = serializers.CharField()
    matches = serializers.BooleanField()


class FilterTestedSerializer(AnsweredSerializer):
    """Result of a filter test. For an invalid filter, `problems` has a reason per part and no
    message is tested."""

    valid = serializers.BooleanField()
    problems = serializers.DictField(child=serializers.CharField())
    tested = serializers.IntegerField()
    matched = serializers.IntegerField()
    items = MatchSerializer(many=True)


@needs(Need.READ)
class FilterTest(ClusterResource):
    @extend_schema(
        request=FilterTestSerializer,
        responses=FilterTestedSerializer,
        examples=[
            OpenApiExample(
                "by tag and body",
                {
                    "topic": "orders",
                    "tags": "paid",
                    "body": "$.total > 100",
                    "body_test": "json",
                },
                request_only=True,
            )
        ],
    )
    def post(self, request: Request, cluster: str) -> Response:
        """Test a filter on the newest messages of a topic, without consuming."""
        serializer = FilterTestSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        fields = serializer.validated_data
        message_filter = MessageFilter(
            fields["tags"].strip(),
            fields["sql"].strip(),
            fields["body"],
            BodyTest(fields["body_test"]),
        ).decoding(decoder_for(self.cluster))
        problems, test = {}, None
        try:
            test = message_filter.compiled()
        except FilterError as wrong:
            problems[wrong.field] = str(wrong.detail)
        answer = self.cluster.ask(browse, fields["topic"], None, None, None, fields["sample"])
        items = [
            {
                "msg_id": ref.message.msg_id,
                "offset_msg_id": ref.message.offset_msg_id,
                "matches": test(ref.message),
            }
            for ref in answer.value.rows
            if test is not None
        ]
        return Response(
            {
                "valid": test is not None,
                "problems": problems,
                "tested": len(items),
                "matched": sum(bool(item["matches"]) for item in items),
                "items": items,
                **told_with(answer),
            }
        )

"""REST resource that tries a filter out, before a search or a consumer uses it."""

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

SAMPLE_MESSAGES_MAX = 200
SAMPLE_MESSAGES = 100


class FilterTestSerializer(BodySerializer):
    """A filter, and the topic whose newest messages it is tried on."""

    topic = serializers.CharField(max_length=TOPIC_CHARS_MAX)
    sample = serializers.IntegerField(
        min_value=1,
        max_value=SAMPLE_MESSAGES_MAX,
        default=SAMPLE_MESSAGES,
        help_text="How many of the newest messages are looked at.",
    )
    tags = serializers.CharField(max_length=TAGS_CHARS_MAX, default="", allow_blank=True)
    sql = serializers.CharField(max_length=SQL_CHARS_MAX, default="", allow_blank=True)
    body = serializers.CharField(max_length=BODY_CHARS_MAX, default="", allow_blank=True)
    body_test = serializers.ChoiceField(
        choices=[each.value for each in BodyTest], default=BodyTest.TEXT.value
    )


class MatchSerializer(serializers.Serializer[Any]):
    """One message of the sample."""

    msg_id = serializers.CharField()
    offset_msg_id = serializers.CharField()
    matches = serializers.BooleanField()


class FilterTestedSerializer(AnsweredSerializer):
    """How the filter went. One that cannot be used tells why, by part, and tests nothing."""

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
        """Try a filter on a topic's newest messages; nothing is consumed."""
        serializer = FilterTestSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        asked = serializer.validated_data
        wanted = MessageFilter(
            asked["tags"].strip(), asked["sql"].strip(), asked["body"], BodyTest(asked["body_test"])
        )
        problems, test = {}, None
        try:
            test = wanted.compiled()
        except FilterError as wrong:
            problems[wrong.field] = str(wrong.detail)
        answer = self.cluster.ask(browse, asked["topic"], None, None, None, asked["sample"])
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
                "matched": sum(bool(each["matches"]) for each in items),
                "items": items,
                **told_with(answer),
            }
        )

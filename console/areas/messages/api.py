"""REST resources of stored messages: browse a topic, find by any id or key, one message."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.paging import read_limit
from console.api.serializers import AnsweredSerializer
from console.api.views import ClusterResource, told_with
from console.areas.messages.body import view_body
from console.areas.messages.forms import QUEUE_CHARS_MAX, SEARCH_CHARS_MAX, TOPIC_CHARS_MAX
from console.areas.messages.views import BodyDownload, found_message
from console.gateway.messages.browse import PAGE_MESSAGES_MAX, browse
from console.gateway.messages.filters import BodyTest, FilterError, MessageFilter
from console.gateway.messages.lookup import Index, find
from console.gateway.messages.stored import MessageRef, view

BODY_FORMS = ["json", "xml", "text", "hex", "base64"]


class MessageRowSerializer(serializers.Serializer[Any]):
    """A stored message without its body."""

    msg_id = serializers.CharField(source="message.msg_id")
    offset_msg_id = serializers.CharField(source="message.offset_msg_id")
    topic = serializers.CharField(source="message.topic")
    broker = serializers.CharField(source="broker.name")
    queue_id = serializers.IntegerField(source="message.queue_id")
    queue_offset = serializers.IntegerField(source="message.queue_offset")
    tags = serializers.CharField(source="message.tags", allow_null=True)
    keys = serializers.ListField(child=serializers.CharField(), source="message.keys")
    store_timestamp = serializers.IntegerField(source="message.store_timestamp")
    born_timestamp = serializers.IntegerField(source="message.born_timestamp")
    reconsume_times = serializers.IntegerField(source="message.reconsume_times")
    store_size = serializers.IntegerField(source="message.store_size")


class BodySerializer(serializers.Serializer[Any]):
    """The body in a form that holds it truthfully; `/body` gives all of it as bytes."""

    form = serializers.ChoiceField(choices=BODY_FORMS)
    text = serializers.CharField()
    size_bytes = serializers.IntegerField()
    shown_bytes = serializers.IntegerField()
    compression = serializers.CharField(help_text="What it was sent with; empty for none.")
    encoding = serializers.CharField(help_text="`binary` for what is no text.")
    sha256 = serializers.CharField(help_text="Of the whole body, as `/body` gives it.")
    problem = serializers.CharField()


class MessageSerializer(MessageRowSerializer):
    """A stored message with its properties and body."""

    properties = serializers.DictField(child=serializers.CharField(), source="message.properties")
    born_host = serializers.SerializerMethodField()
    sys_flag = serializers.IntegerField(source="message.sys_flag")
    flag = serializers.IntegerField(source="message.flag")
    body = serializers.SerializerMethodField()

    def get_born_host(self, ref: MessageRef) -> str:
        host, port = ref.message.born_host
        return f"{host}:{port}"

    @extend_schema(responses=BodySerializer)
    def get_body(self, ref: MessageRef) -> dict[str, Any]:
        return dict(BodySerializer(view_body(ref.message, self.context.get("form", ""))).data)


class MessagePageSerializer(AnsweredSerializer):
    items = MessageRowSerializer(many=True)
    total = serializers.IntegerField(help_text="Messages within the time, on all pages.")
    unreadable = serializers.IntegerField(help_text="Messages of this page that are missing.")
    scanned = serializers.IntegerField(help_text="Messages that were looked at for this page.")
    left = serializers.IntegerField(help_text="Messages before the end of this page.")
    next_cursor = serializers.CharField(
        allow_null=True,
        help_text="Asks for what is older. With a filter a page may have one though it is not "
        "full, or empty: the budget of one call was used up, and the next call goes on.",
    )


class IndexSearchedSerializer(serializers.Serializer[Any]):
    """One index that was looked through."""

    index = serializers.ChoiceField(choices=[each.value for each in Index])
    found = serializers.IntegerField()
    brokers = serializers.IntegerField()
    topics = serializers.IntegerField(allow_null=True)


class FoundSerializer(AnsweredSerializer):
    items = MessageRowSerializer(many=True)
    is_cut = serializers.BooleanField(
        help_text="A broker had more than it ever answers with, or there were too many topics."
    )
    searched = IndexSearchedSerializer(many=True, help_text="What was looked through, in order.")


TOPIC = OpenApiParameter("topic", OpenApiTypes.STR, required=True)
FILTER = (
    OpenApiParameter("queue", OpenApiTypes.STR, description="`broker-a:3`, or `broker-a`."),
    OpenApiParameter("tags", OpenApiTypes.STR, description="A tag, or several with `||`."),
    OpenApiParameter("sql", OpenApiTypes.STR, description="SQL92 over properties."),
    OpenApiParameter("body", OpenApiTypes.STR, description="What the body must hold."),
    OpenApiParameter(
        "body_test",
        OpenApiTypes.STR,
        enum=[each.value for each in BodyTest],
        description="How `body` is meant: text that is contained, an expression of RE2, or a JSON "
        "path such as `$.order.total > 100`. `text` if absent.",
    ),
)


class MessageList(ClusterResource):
    @extend_schema(
        parameters=[
            TOPIC,
            OpenApiParameter("begin_ms", OpenApiTypes.INT64, description="Stored then or later."),
            OpenApiParameter("end_ms", OpenApiTypes.INT64, description="Stored then or earlier."),
            OpenApiParameter("limit", OpenApiTypes.INT, description="1 to 200; 50 if absent."),
            OpenApiParameter("cursor", OpenApiTypes.STR),
            *FILTER,
        ],
        responses=MessagePageSerializer,
    )
    def get(self, request: Request, cluster: str) -> Response:
        """Messages of a topic, newest first."""
        params = request.query_params
        answer = self.cluster.ask(
            browse,
            required(params.get("topic"), "topic", TOPIC_CHARS_MAX),
            moment(params.get("begin_ms"), "begin_ms"),
            moment(params.get("end_ms"), "end_ms"),
            params.get("cursor") or None,
            read_limit(params.get("limit"), PAGE_MESSAGES_MAX),
            optional(params.get("queue"), "queue", QUEUE_CHARS_MAX),
            wanted_by(params),
        )
        page = answer.value
        return Response(
            {
                "items": MessageRowSerializer(page.rows, many=True).data,
                "total": page.total,
                "unreadable": page.unreadable,
                "scanned": page.scanned,
                "left": page.left,
                "next_cursor": page.next_cursor,
                **told_with(answer),
            }
        )


class FoundMessageList(ClusterResource):
    @extend_schema(
        parameters=[
            OpenApiParameter("q", OpenApiTypes.STR, required=True, description="Any id or key."),
            OpenApiParameter("topic", OpenApiTypes.STR, description="All topics if absent."),
        ],
        responses=FoundSerializer,
    )
    def get(self, request: Request, cluster: str) -> Response:
        """Messages that an id or key names, newest first; an empty list when there are none."""
        params = request.query_params
        text = required(params.get("q"), "q", SEARCH_CHARS_MAX)
        answer = self.cluster.ask(find, text, params.get("topic", "").strip())
        body = {
            "items": MessageRowSerializer(answer.value.refs, many=True).data,
            "is_cut": answer.value.is_cut,
            "searched": IndexSearchedSerializer(answer.value.searched, many=True).data,
        }
        return Response({**body, **told_with(answer)})


class MessageOne(ClusterResource):
    @extend_schema(
        parameters=[
            OpenApiParameter(
                "form",
                OpenApiTypes.STR,
                enum=BODY_FORMS,
                description="How the body is shown; the best form if absent or untruthful.",
            )
        ],
        responses=MessageSerializer,
    )
    def get(self, request: Request, cluster: str, offset_msg_id: str) -> Response:
        """One message with its properties and body."""
        answer = self.cluster.ask(view, offset_msg_id)
        ref = found_message(answer, offset_msg_id)
        form = request.query_params.get("form", "")
        context = {"form": form if form in BODY_FORMS else ""}
        body = MessageSerializer(ref, context=context).data
        return Response({**body, **told_with(answer)})


class MessageBody(ClusterResource):
    @extend_schema(responses={(200, "application/octet-stream"): OpenApiResponse(bytes)})
    def get(self, request: Request, cluster: str, offset_msg_id: str) -> HttpResponse:
        """The body as bytes, unpacked when it was sent compressed."""
        answer = self.cluster.ask(view, offset_msg_id)
        return BodyDownload.file(found_message(answer, offset_msg_id))


def wanted_by(params: Mapping[str, Any]) -> MessageFilter:
    """The filter that parameters or a body ask for; raises ValidationError for a wrong part."""
    test = str(params.get("body_test") or BodyTest.TEXT)
    if test not in set(BodyTest):
        raise ValidationError({"body_test": [f"One of {', '.join(BodyTest)}."]})
    tags, sql, body = (str(params.get(name) or "") for name in ("tags", "sql", "body"))
    wanted = MessageFilter(tags.strip(), sql.strip(), body, BodyTest(test))
    try:
        wanted.compiled()
    except FilterError as wrong:
        raise ValidationError({wrong.field: [str(wrong.detail)]}) from wrong
    return wanted


def required(text: str | None, name: str, chars_max: int) -> str:
    text = optional(text, name, chars_max)
    if not text:
        raise ValidationError({name: ["This parameter is required."]})
    return text


def optional(text: str | None, name: str, chars_max: int) -> str:
    text = (text or "").strip()
    if len(text) > chars_max:
        raise ValidationError({name: [f"At most {chars_max} characters."]})
    return text


def moment(text: str | None, name: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 15):
        raise ValidationError({name: ["Expected milliseconds since the epoch."]})
    return int(text)

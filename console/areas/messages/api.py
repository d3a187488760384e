"""REST resources of stored messages: browse a topic, find by id or key, show a message."""

from collections.abc import Mapping
from dataclasses import replace
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
from console.frame.access import Need, check_may
from console.frame.permissions import Scope, Target
from console.gateway.messages.browse import PAGE_MESSAGES_MAX, browse
from console.gateway.messages.filters import BodyTest, FilterError, MessageFilter
from console.gateway.messages.lookup import Index, find
from console.gateway.messages.stored import MessageRef, view
from console.services.schemas.stored import decoder_for

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
    masked = serializers.BooleanField(help_text="Fields are replaced by `***` for the caller.")


class BodySerializer(serializers.Serializer[Any]):
    """The body in a lossless form; `/body` returns the complete bytes."""

    form = serializers.ChoiceField(choices=BODY_FORMS)
    text = serializers.CharField()
    size_bytes = serializers.IntegerField()
    shown_bytes = serializers.IntegerField()
    compression = serializers.CharField(help_text="Compression of the stored body; empty for none.")
    encoding = serializers.CharField(
        help_text="Text encoding, or format and type of a body with a schema; `binary` for other "
        "bodies without text."
    )
    sha256 = serializers.CharField(
        help_text="SHA-256 of the complete body, as returned by `/body`; empty when masked."
    )
    problem = serializers.CharField()
    misfit = serializers.CharField(
        help_text="Why the body does not fit the schema of its topic; empty without a schema."
    )


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
        form, decoder = self.context.get("form", ""), self.context["decoder"]
        shown = view_body(ref.message, form, decoder)
        return dict(BodySerializer(replace(shown, sha256="") if ref.masked else shown).data)


class MessagePageSerializer(AnsweredSerializer):
    items = MessageRowSerializer(many=True)
    total = serializers.IntegerField(help_text="Messages in the time range, on all pages.")
    unreadable = serializers.IntegerField(help_text="Unreadable messages of this page.")
    scanned = serializers.IntegerField(help_text="Messages scanned for this page.")
    left = serializers.IntegerField(help_text="Older messages after this page.")
    next_cursor = serializers.CharField(
        allow_null=True,
        help_text="Cursor of older messages. With a filter, a page can be short or empty and still "
        "have a cursor: the scan budget of one call was used up. The next call continues.",
    )


class IndexSearchedSerializer(serializers.Serializer[Any]):
    """A searched index."""

    index = serializers.ChoiceField(choices=[index.value for index in Index])
    found = serializers.IntegerField()
    brokers = serializers.IntegerField()
    topics = serializers.IntegerField(allow_null=True)


class FoundSerializer(AnsweredSerializer):
    items = MessageRowSerializer(many=True)
    is_cut = serializers.BooleanField(
        help_text="The result is incomplete: a broker's limit or the limit of topics was reached."
    )
    searched = IndexSearchedSerializer(many=True, help_text="Searched indexes, in order.")


TOPIC = OpenApiParameter("topic", OpenApiTypes.STR, required=True)
FILTER = (
    OpenApiParameter("queue", OpenApiTypes.STR, description="`broker-a:3`, or `broker-a`."),
    OpenApiParameter("tags", OpenApiTypes.STR, description="A tag, or several with `||`."),
    OpenApiParameter("sql", OpenApiTypes.STR, description="SQL92 over properties."),
    OpenApiParameter(
        "body", OpenApiTypes.STR, description="Text, expression or path for the body."
    ),
    OpenApiParameter(
        "body_test",
        OpenApiTypes.STR,
        enum=[test.value for test in BodyTest],
        description="Meaning of `body`: contained text, RE2 expression, or JSON path such as "
        "`$.order.total > 100`. `text` if absent.",
    ),
)


class MessageList(ClusterResource):
    access_query = "topic"

    @extend_schema(
        parameters=[
            TOPIC,
            OpenApiParameter("begin_ms", OpenApiTypes.INT64, description="Earliest store time."),
            OpenApiParameter("end_ms", OpenApiTypes.INT64, description="Latest store time."),
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
            filter_from(params).decoding(decoder_for(self.cluster)),
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
        """Messages with an id or key, newest first; an empty list without a match."""
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
    access_names = Scope.SOME

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "form",
                OpenApiTypes.STR,
                enum=BODY_FORMS,
                description="Form of the body; the best form if absent or not lossless.",
            )
        ],
        responses=MessageSerializer,
    )
    def get(self, request: Request, cluster: str, offset_msg_id: str) -> Response:
        """A message with properties and body."""
        answer = self.cluster.ask(view, offset_msg_id)
        ref = found_message(answer, offset_msg_id)
        check_may(request, Need.READ, Target("messages", cluster, ref.message.topic))
        form = request.query_params.get("form", "")
        context = {"form": form if form in BODY_FORMS else "", "decoder": decoder_for(self.cluster)}
        body = MessageSerializer(ref, context=context).data
        return Response({**body, **told_with(answer)})


class MessageBody(ClusterResource):
    access_names = Scope.SOME

    @extend_schema(responses={(200, "application/octet-stream"): OpenApiResponse(bytes)})
    def get(self, request: Request, cluster: str, offset_msg_id: str) -> HttpResponse:
        """The body as bytes, decompressed; 403 when fields are masked for the caller."""
        answer = self.cluster.ask(view, offset_msg_id)
        ref = found_message(answer, offset_msg_id)
        check_may(request, Need.READ, Target("messages", cluster, ref.message.topic))
        return BodyDownload.file(ref)


def filter_from(params: Mapping[str, Any]) -> MessageFilter:
    """The message filter of query parameters or a request body; raises ValidationError."""
    test = str(params.get("body_test") or BodyTest.TEXT)
    if test not in set(BodyTest):
        raise ValidationError({"body_test": [f"One of {', '.join(BodyTest)}."]})
    tags, sql, body = (str(params.get(name) or "") for name in ("tags", "sql", "body"))
    message_filter = MessageFilter(tags.strip(), sql.strip(), body, BodyTest(test))
    try:
        message_filter.compiled()
    except FilterError as wrong:
        raise ValidationError({wrong.field: [str(wrong.detail)]}) from wrong
    return message_filter


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

"""REST resource of the live tail: new messages of a topic as server-sent events.

    event: rows
    data: {"at_ms": …, "rows": [row, …], "seen": …, "matched": …, "dropped": …, …}

The events are the frames of the WebSocket feed (`feeds.py`): `rows` with new messages and once in
HEARTBEAT_S, `lost` while the cluster is unreachable, `refused` once when too many tails are open. A
stream ends after STREAM_SECONDS_MAX; clients such as EventSource connect again, and the account is
checked again.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from time import monotonic
from typing import Any

from django.http import StreamingHttpResponse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request

from console.api.views import ClusterResource
from console.areas.messages.forms import RATES, TailForm
from console.areas.messages.tails import Listener, TooManyTails, join_tail, leave_tail
from console.frame.masking import mask_of
from console.gateway import Cluster
from console.gateway.messages.filters import BodyTest
from console.gateway.messages.masks import Mask
from console.gateway.topics.listing import topic_detail

#: Maximum duration of a stream, seconds.
STREAM_SECONDS_MAX = 600.0
SEND_EVERY_S = 0.1
HEARTBEAT_S = 5.0
STREAM_TYPE = "text/event-stream"


class EventStream(BaseRenderer):
    """Accepts clients that ask for an event stream; errors remain JSON."""

    media_type = STREAM_TYPE
    format = "sse"

    def render(self, data: Any, accepted_media_type: Any = None, context: Any = None) -> bytes:
        return JSONRenderer().render(data)


class TopicTail(ClusterResource):
    renderer_classes = (JSONRenderer, EventStream)

    @extend_schema(
        parameters=[
            OpenApiParameter("queue", description="`broker` or `broker:queue`; all if absent."),
            OpenApiParameter("tags", description="Tag expression, such as `paid || shipped`."),
            OpenApiParameter("sql", description="SQL92 expression over properties."),
            OpenApiParameter("body", description="Text that the body holds, see `body_test`."),
            OpenApiParameter("body_test", enum=[each.value for each in BodyTest]),
            OpenApiParameter(
                "rate", OpenApiTypes.INT, enum=RATES, description="Maximum rows per second."
            ),
        ],
        responses={
            (200, STREAM_TYPE): OpenApiResponse(
                OpenApiTypes.STR,
                examples=[OpenApiExample("rows", 'event: rows\ndata: {"rows": []}\n\n')],
            )
        },
    )
    def get(self, request: Request, cluster: str, topic: str) -> StreamingHttpResponse:
        """Tail a topic: messages stored from now on, as server-sent events.

        A stream ends after ten minutes; connect again to continue from then on.
        """
        given = {"body_test": BodyTest.TEXT.value, **request.query_params.dict(), "topic": topic}
        form = TailForm(given)
        if not form.is_valid():
            raise ValidationError(
                {name: [str(text) for text in texts] for name, texts in form.errors.items()}
            )
        self.cluster.ask(topic_detail, topic)  # 404 for an unknown topic
        return StreamingHttpResponse(
            events(self.cluster, topic, form.cleaned_data, mask_of(request.user, cluster)),
            content_type=STREAM_TYPE,
            headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
        )


async def events(
    cluster: Cluster, topic: str, params: Mapping[str, Any], mask: Mask
) -> AsyncIterator[bytes]:
    """Yield events until the client leaves or STREAM_SECONDS_MAX have passed."""
    listener = Listener(params["filter"], params["queue"], params["rate"], mask)
    try:
        tail = join_tail(cluster, topic, listener)
    except TooManyTails:
        reason = _("Too many open live tails; close a live tail first.")
        yield event({"type": "refused", "reason": reason})
        return
    try:
        yield event(listener.take())  # the client knows that the stream is open
        end_s = monotonic() + STREAM_SECONDS_MAX
        while monotonic() < end_s:
            with suppress(TimeoutError):
                await asyncio.wait_for(listener.changed.wait(), HEARTBEAT_S)
            yield event(listener.take())
            await listener.renew_mask(cluster)
            await asyncio.sleep(SEND_EVERY_S)
    finally:
        leave_tail(tail, listener)


def event(frame: Mapping[str, Any]) -> bytes:
    fields = {name: value for name, value in frame.items() if name != "type"}
    return f"event: {frame['type']}\ndata: {json.dumps(fields, ensure_ascii=False)}\n\n".encode()

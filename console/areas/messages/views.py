"""Pages of stored messages: browse, find, show a message, download a body."""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.areas.messages.body import BodyForm, preview, sent_body, view_body
from console.areas.messages.forms import SPANS, BrowseForm, FindForm
from console.areas.messages.listing import COLUMNS, TABLE
from console.areas.messages.properties import property_rows
from console.frame.access import Need, check_may
from console.frame.column_choice import read_choice
from console.frame.pages import ClusterPage, Crumb, only_readable
from console.frame.permissions import Scope, Target
from console.gateway import (
    Answer,
    BrokerFailure,
    Cluster,
    GatewayError,
    MaskedFields,
    NotFound,
)
from console.gateway.messages.browse import browse, queue_names
from console.gateway.messages.deliveries import deliveries
from console.gateway.messages.filters import BodyTest
from console.gateway.messages.lookup import Index, find
from console.gateway.messages.paging import CursorError
from console.gateway.messages.schemas.decoder import Decoder
from console.gateway.messages.stored import MessageRef, view
from console.gateway.topics.listing import TopicRow, topic_rows
from console.services.schemas.stored import decoder_for
from core_broker.message.topics import DLQ_PREFIX

PAGE_MESSAGES = 50
TOPICS_OFFERED_MAX = 40
#: Address parameters of a list, without the cursor.
TIMES = ("begin", "end", "last")
ASKED_IN_ADDRESS = ("topic", "queue", *TIMES, "tags", "sql", "body_test", "body")
#: Topic types that no application owns, left out of suggestions.
OWN_KINDS = frozenset({"system", "retry", "dlq"})
SPAN_NAMES = {
    "": gettext_lazy("All"),
    "5m": gettext_lazy("5 minutes"),
    "1h": gettext_lazy("1 hour"),
    "1d": gettext_lazy("1 day"),
}
INDEX_NAMES = {
    Index.OFFSET_ID: gettext_lazy("commit log, by offset message ID"),
    Index.PLACE: gettext_lazy("consume queue, by offset"),
    Index.UNIQUE_KEY: gettext_lazy("message ID index"),
    Index.KEY: gettext_lazy("key index"),
}
BODY_FORM_NAMES = {
    BodyForm.TREE: gettext_lazy("Tree"),
    BodyForm.JSON: "JSON",
    BodyForm.XML: "XML",
    BodyForm.TEXT: gettext_lazy("Text"),
    BodyForm.HEX: gettext_lazy("Hex"),
    BodyForm.BASE64: "Base64",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A message as a list row."""

    ref: MessageRef
    preview: str


@dataclass(frozen=True, slots=True)
class Span:
    """A chip with a time range."""

    label: Any
    query: str
    chosen: bool


def _spans(query: dict[str, str]) -> list[Span]:
    """Time range chips: “all”, then ranges that end now. The chips keep the filter."""
    last = query.get("last", "")
    rest = {name: value for name, value in query.items() if name not in TIMES}
    is_free = "begin" in query or "end" in query
    return [
        Span(
            label,
            urlencode(rest | ({"last": name} if name else {})),
            not is_free and name == last,
        )
        for name, label in SPAN_NAMES.items()
    ]


def rows(refs: Iterable[MessageRef], decoder: Decoder) -> list[Row]:
    return [Row(ref, preview(ref.message, decoder)) for ref in refs]


def asked_in_address(address: QueryDict) -> dict[str, str]:
    """The list parameters of an address; saved views and shared links have exactly these."""
    query = {name: str(address[name]) for name in ASKED_IN_ADDRESS if address.get(name)}
    if query.get("last") not in SPANS:
        query.pop("last", None)
    if not query.get("body"):
        query.pop("body_test", None)
    return query


class MessageListPage(ClusterPage):
    """Messages of a topic, newest first; without a topic, a list of topics to choose."""

    template = "message/list.html"
    part = "message/list_rows.html"
    access_query, access_names = "topic", Scope.SOME

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        address = self.address()
        is_submitted = "topic" in address
        form = BrowseForm(_as_form(address) if is_submitted else None)
        is_usable = is_submitted and form.is_valid()
        known = known_topics(request, self.cluster)
        context: dict[str, Any] = {
            "form": form,
            "find_form": FindForm(auto_id="find_%s"),
            "topics": [row.name for row in known],
            "offered": [row.name for row in known if row.kind not in OWN_KINDS][
                :TOPICS_OFFERED_MAX
            ],
        }
        if is_usable:
            context |= self._page(form.cleaned_data, address.get("cursor", ""))
        context["choice"] = read_choice(request, TABLE, COLUMNS)
        status = 200 if is_usable or not is_submitted else 400
        return self.show(**{"title": _("Messages"), **context, **self.frame()}, status=status)

    def address(self) -> QueryDict:
        """The parameters of the list."""
        return self.request.GET

    def frame(self) -> dict[str, Any]:
        """What the frame around the list shows."""
        return {}

    def _page(self, fields: dict[str, Any], cursor: str) -> dict[str, Any]:
        topic, message_filter = fields["topic"], fields["filter"]
        question = (topic, fields["begin"], fields["end"])
        decoder = decoder_for(self.cluster)
        rest = (PAGE_MESSAGES, fields["queue"], message_filter.decoding(decoder))
        try:
            answer = self.cluster.ask(browse, *question, cursor or None, *rest)
        except CursorError:
            # Truncated address: show the first page instead of an error.
            answer = self.cluster.ask(browse, *question, None, *rest)
            cursor = ""
        query = asked_in_address(self.address())
        following = answer.value.next_cursor
        return {
            "answer": answer,
            "topic_name": topic,
            "message_filter": message_filter,
            "rows": rows(answer.value.rows, decoder),
            "page_size": PAGE_MESSAGES,
            "first_query": urlencode(query),
            "tail_query": urlencode(
                {name: value for name, value in query.items() if name not in TIMES}
            ),
            "next_query": urlencode({**query, "cursor": following}) if following else "",
            "is_first_page": not cursor,
            "spans": _spans(query),
            "queues": self.cluster.ask(queue_names, topic).value,
        }


def _as_form(address: QueryDict) -> dict[str, str]:
    """Form data of the address, with the default body test."""
    return {"body_test": BodyTest.TEXT.value} | {name: str(address[name]) for name in address}


def known_topics(request: HttpRequest, cluster: Cluster) -> Sequence[TopicRow]:
    """Topics for the suggestions of a field; empty when the cluster fails."""
    try:
        return only_readable(request, "messages", cluster, cluster.ask(topic_rows)).value
    except GatewayError:
        return ()


class FindPage(ClusterPage):
    """Search by id or key; a single match redirects to the message."""

    template = "message/find.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponseBase:
        form = FindForm(request.GET or None)
        crumbs = [Crumb(_("Messages"), _list_url(self)), Crumb(_("Find"))]
        if not form.is_valid():
            status = 400 if form.is_bound else 200
            return self.show(title=_("Find message"), crumbs=crumbs, form=form, status=status)
        text, topic = form.cleaned_data["q"].strip(), form.cleaned_data["topic"].strip()
        answer = self.cluster.ask(find, text, topic)
        refs = answer.value.refs
        if len(refs) == 1:
            only = refs[0].message
            return redirect("message:detail", self.cluster.name, only.offset_msg_id)
        return self.show(
            title=_("Find message"),
            crumbs=crumbs,
            form=form,
            answer=answer,
            text=text,
            topic=topic,
            rows=rows(refs, decoder_for(self.cluster)),
            choice=read_choice(request, TABLE, COLUMNS),
            searched=[(INDEX_NAMES[index.index], index) for index in answer.value.searched],
        )


class MessagePage(ClusterPage):
    """A stored message: position, properties, body, and delivery state by group.

    The part is the message inside a list row, without delivery states.
    """

    template = "message/detail.html"
    part = "message/peek.html"
    access_names = Scope.SOME

    def get(self, request: HttpRequest, cluster: str, offset_msg_id: str) -> HttpResponse:
        ref = stored_message(self, offset_msg_id)
        is_part = bool(getattr(request, "htmx", False))
        message = ref.message
        check_may(request, Need.READ, Target("messages", cluster, message.topic))
        body = view_body(message, request.GET.get("form", BodyForm.TREE), decoder_for(self.cluster))
        return self.show(
            title=message.msg_id,
            crumbs=[
                Crumb(_("Messages"), _list_url(self)),
                Crumb(message.topic, f"{_list_url(self)}?{urlencode({'topic': message.topic})}"),
                Crumb(message.msg_id),
            ],
            ref=ref,
            message=message,
            body=body,
            masking=MaskedFields(message.topic) if ref.masked else None,
            body_forms=[(form, BODY_FORM_NAMES[form]) for form in body.forms],
            properties=property_rows(message.properties),
            deliveries=None if is_part else self.cluster.ask(deliveries, offset_msg_id),
            dead_group=message.topic.removeprefix(DLQ_PREFIX)
            if message.topic.startswith(DLQ_PREFIX)
            else "",
        )


class BodyDownload(ClusterPage):
    """Download of the body: decompressed if compressed, otherwise byte for byte."""

    access_names = Scope.SOME

    def get(self, request: HttpRequest, cluster: str, offset_msg_id: str) -> HttpResponse:
        ref = stored_message(self, offset_msg_id)
        check_may(request, Need.READ, Target("messages", cluster, ref.message.topic))
        return self.file(ref)

    @staticmethod
    def file(ref: MessageRef) -> HttpResponse:
        if ref.masked:
            raise MaskedFields(ref.message.topic)
        body, _compression, _problem = sent_body(ref.message)
        digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
        return HttpResponse(
            body,
            content_type="application/octet-stream",
            headers={
                "Content-Disposition": f'attachment; filename="{ref.message.offset_msg_id}.bin"',
                "Repr-Digest": f"sha-256=:{digest}:",
            },
        )


def stored_message(page: ClusterPage, offset_msg_id: str) -> MessageRef:
    """The message with an offset message id; raises NotFound with a likely cause."""
    return found_message(page.cluster.ask(view, offset_msg_id), offset_msg_id)


def found_message(answer: Answer[MessageRef | None], offset_msg_id: str) -> MessageRef:
    """The message of an answer; raises NotFound for an answer without a message."""
    if answer.value is None:
        raise no_such_message(offset_msg_id, answer.failures)
    return answer.value


def no_such_message(offset_msg_id: str, failures: tuple[BrokerFailure, ...] = ()) -> NotFound:
    hint = gettext_lazy(
        "The message may be past its retention time (fileReservedTime), or the broker is down."
    )
    return NotFound(
        format_lazy(
            gettext_lazy("The cluster has no message with offset message ID “{id}”."),
            id=offset_msg_id[:64],
        ),
        hint=gettext_lazy("A failed broker may have the message.") if failures else hint,
        failures=failures,
    )


def _list_url(page: ClusterPage) -> str:
    return reverse("message:list", kwargs={"cluster": page.cluster.name})

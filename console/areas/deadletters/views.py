"""Read-only pages of dead letters: list of groups, list of messages, one message, export.

`sending.py` and `replaying.py` hold the pages with actions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from console.areas.deadletters import listing
from console.areas.deadletters.forms import EditForm, FilterForm, ResendForm
from console.areas.deadletters.ledger import history
from console.areas.deadletters.listing import GroupLine
from console.areas.deadletters.message_export import FORMATS, exported, file_name
from console.areas.deadletters.models import Replay
from console.areas.deadletters.requests import filter_of
from console.areas.deadletters.states import dead_letters, dealt_with, discards_of
from console.areas.messages.body import view_body
from console.areas.messages.properties import property_rows
from console.areas.messages.views import (
    BODY_FORM_NAMES,
    no_such_message,
    stored_message,
)
from console.areas.traces.drawing import Step, steps
from console.frame.access import Need, needs
from console.frame.pages import ClusterPage, Crumb, only_readable
from console.frame.permissions import Scope
from console.frame.tables import TableQuery
from console.gateway import MaskedFields, NotFound, Unusable, merge_failures
from console.gateway.dead_letters import summary as questions
from console.gateway.dead_letters.causes import newest_cause, newest_causes, newest_ms
from console.gateway.dead_letters.resend import origin_topic
from console.gateway.dead_letters.search import DeadLetterFilter, search
from console.gateway.groups.members import group_clients
from console.gateway.groups.metrics import client_counts
from console.gateway.messages.paging import CursorError
from console.gateway.traces.journey import Journey, journey
from console.services.schemas.stored import decoder_for
from core_broker.message.properties import PROPERTY_ORIGIN_MESSAGE_ID
from core_broker.message.topics import dlq_topic

PAGE_DEAD_LETTERS = 50
REPLAYS_SHOWN = 3


def dead_letter_crumbs(cluster: str, group: str, *last: str) -> list[Crumb]:
    """Breadcrumbs from the list of groups to a page of one group."""
    names = {"cluster": cluster}
    group_url = reverse("deadletters:group", kwargs={**names, "group": group}) if last else None
    return [
        Crumb(_("Dead letters"), reverse("deadletters:list", kwargs=names)),
        Crumb(group, group_url),
        *(Crumb(each) for each in last),
    ]


class GroupListPage(ClusterPage):
    """Groups with dead letters: count, growth, online consumers, cause."""

    template = "deadletters/list.html"
    part = "deadletters/list_rows.html"
    access_names = Scope.SOME

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        found = self.cluster.ask(questions.groups_with_dead_letters)
        answer = only_readable(request, "deadletters", self.cluster, found, "group")
        query = TableQuery.of_page(
            request, listing.COLUMNS, table="dead_letters", default=listing.ORDERING_DEFAULT
        )
        lines = query.matching([GroupLine(each) for each in answer.value])
        if query.ordered_by == "open":
            handled = self._handled(lines)
            lines = [replace(line, handled=handled[line.name]) for line in lines]
        page = query.page(lines)
        # Each shown group takes requests and rows of the database; a cluster may have thousands.
        names = tuple(page.names)
        clients = self.cluster.ask(client_counts, names)
        read = tuple((line.name, line.held.newest_ms) for line in page.rows)
        causes = self.cluster.ask(newest_causes, read).value
        return self.show(
            title=_("Dead letters"),
            answer=answer,
            failures=merge_failures(answer.failures, clients.failures),
            page=page,
            choice=query.choice,
            lines=listing.filled(page.rows, self._handled(page.rows), clients.value, causes),
            read_ms=min((each.read_ms for each in answer.value if each.read_ms), default=None),
            groups=len(answer.value),
            total=sum(each.count or 0 for each in answer.value),
        )

    def _handled(self, lines: Sequence[GroupLine]) -> Mapping[str, int]:
        oldest_ms = {line.name: line.held.oldest_ms for line in lines}
        return dealt_with(self.cluster.name, oldest_ms)


class DeadLetterListPage(ClusterPage):
    """The dead letters of one group, newest first, with check boxes for a resend."""

    template = "deadletters/group.html"

    def get(self, request: HttpRequest, cluster: str, group: str) -> HttpResponse:
        form = FilterForm(request.GET)
        is_valid = form.is_valid()
        asked = form.asked if is_valid else {}
        summary = self.cluster.ask(questions.summary, group).value
        read_ms = summary.newest_ms if summary else None
        wanted = filter_of(self.cluster.name, group, asked)
        crumbs = dead_letter_crumbs(self.cluster.name, group)
        try:
            answer, is_first = self._search(group, wanted, request.GET.get("cursor", ""))
        except NotFound:
            return self.show(title=group, crumbs=crumbs, group=group, filter_form=form)
        why = self.cluster.ask(newest_cause, group, read_ms).value
        following = answer.value.next_cursor
        query = {name: request.GET[name] for name in form.fields if request.GET.get(name)}
        return self.show(
            title=group,
            crumbs=crumbs,
            status=200 if is_valid else 400,
            group=group,
            summary=summary,
            newest_ms=newest_ms(read_ms, why),
            why=why,
            members=self.cluster.ask(group_clients, group).value,
            answer=answer,
            letters=dead_letters(self.cluster, answer.value.rows),
            form=ResendForm(ids=[]),
            filter_form=form,
            is_filtered=bool(query),
            query=urlencode(query),
            first_query=urlencode(query),
            next_query=urlencode({**query, "cursor": following}) if following else "",
            is_first_page=is_first,
            replays=Replay.objects.filter(cluster=self.cluster.name, group=group)[:REPLAYS_SHOWN],
        )

    def _search(self, group: str, wanted: DeadLetterFilter, cursor: str) -> tuple[Any, bool]:
        """The page of a cursor; the first page for a truncated cursor."""
        ask = self.cluster.ask
        if cursor:
            try:
                return ask(search, group, wanted, cursor, PAGE_DEAD_LETTERS), False
            except CursorError:
                pass
        return ask(search, group, wanted, None, PAGE_DEAD_LETTERS), True


class DeadLetterPage(ClusterPage):
    """One dead letter: message, cause, resend history."""

    template = "deadletters/dead_letter.html"

    def get(
        self, request: HttpRequest, cluster: str, group: str, offset_msg_id: str
    ) -> HttpResponse:
        ref = stored_message(self, offset_msg_id)
        if ref.message.topic != dlq_topic(group):
            raise no_such_message(offset_msg_id)
        edit = EditForm(message=ref.message, masked=ref.masked)
        return self.show_dead_letter(ref, group, edit)

    def show_dead_letter(self, ref: Any, group: str, edit: EditForm, **more: Any) -> HttpResponse:
        message, name = ref.message, self.cluster.name
        body = view_body(message, self.request.GET.get("form", ""), decoder_for(self.cluster))
        origin = origin_topic(message)
        return self.show(
            title=message.msg_id,
            crumbs=dead_letter_crumbs(name, group, message.msg_id),
            group=group,
            ref=ref,
            message=message,
            body=body,
            masking=MaskedFields(message.topic) if ref.masked else None,
            body_forms=[(form, BODY_FORM_NAMES[form]) for form in body.forms],
            properties=property_rows(message.properties),
            origin=origin,
            origin_id=message.properties.get(PROPERTY_ORIGIN_MESSAGE_ID, ""),
            history=history(name, message.offset_msg_id),
            discard=discards_of(name, [message.offset_msg_id]).get(message.offset_msg_id),
            attempts=attempts_of(self.cluster.ask(journey, message.msg_id, origin).value, group),
            members=self.cluster.ask(group_clients, group).value,
            edit_form=edit,
            **{"form": ResendForm(ids=[message.offset_msg_id]), **more},
        )


def attempts_of(found: Journey, group: str) -> Sequence[Step]:
    """Deliveries of a message to one group, from traces."""
    if found.timeline is None:
        return []
    return [each for each in steps(found.timeline, {}) if each.is_attempt and each.group == group]


@needs(Need.WRITE)
class ExportView(ClusterPage):
    """Export of matching dead letters."""

    def get(self, request: HttpRequest, cluster: str, group: str) -> HttpResponseBase:
        form = FilterForm(request.GET)
        kind = request.GET.get("format", "jsonl")
        if not form.is_valid() or kind not in FORMATS:
            raise Unusable(_("Invalid filter or format."))
        wanted = filter_of(self.cluster.name, group, form.asked)
        return export_response(self.cluster, group, wanted, kind)


def export_response(
    cluster: Any, group: str, wanted: DeadLetterFilter, kind: str
) -> StreamingHttpResponse:
    """The export as a streaming response."""
    response = StreamingHttpResponse(
        exported(cluster, group, wanted, kind), content_type=FORMATS[kind]
    )
    response["Content-Disposition"] = f'attachment; filename="{file_name(group, kind)}"'
    return response

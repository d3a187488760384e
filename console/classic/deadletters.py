"""/dlqMessage/…: dead letters by group, sent again, exported."""

import csv
from io import StringIO
from typing import Any

from django.http import HttpResponse
from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.response import Response

from console.areas.deadletters.ledger import resend
from console.audit.recording import audited
from console.audit.views import csv_cell
from console.classic.base import ClassicCall, told
from console.classic.messages import message_view, one_message, page_of, read_body
from console.frame.access import Need, needs
from console.gateway import GatewayError, NotFound, Unusable
from console.gateway.dead_letters.resend import RESEND_MESSAGES_MAX, Outcome, Plan, Result
from core_broker.message.topics import dlq_topic

NAME_CHARS_MAX = 255
COLUMNS = (
    *("topic", "msgId", "bornHost", "bornTimestamp", "storeTimestamp", "reconsumeTimes"),
    *("properties", "messageBody", "bodyCRC"),
)
RESULTS = {Result.SENT: "CR_SUCCESS", Result.SKIPPED: "CR_LATER"}


@needs(Need.READ)
class DeadLetterPage(ClassicCall):
    def post(self, request: Request) -> Response:
        """The dead letters of a group; an empty page when it has none."""
        asked = read_body(request.data)
        topic = str(asked.get("topic") or dlq_topic(str(asked.get("consumerGroup", ""))))
        try:
            return told(page_of(self.cluster, topic, asked))
        except NotFound:
            page = {"content": [], "totalElements": 0, "totalPages": 0, "number": 0}
            return told({"page": page, "taskId": None})


class Resend(ClassicCall):
    actions = {"post": "deadletter.resend"}

    def post(self, request: Request) -> Response:
        """Send dead letters to their group's retry topic: one result for each, and each true.

        Classic hands a message to one consumer directly instead; here it goes the way of a retry.
        """
        wanted = read_wanted(request.data)
        results: list[dict[str, Any]] = []
        for group in dict.fromkeys(group for group, _id in wanted):
            ids = [each for of_group, each in wanted if of_group == group]
            results += self.of_group(request, group, ids)
        return told(results)

    def of_group(self, request: Request, group: str, ids: list[str]) -> list[dict[str, Any]]:
        stored: dict[str, str] = {}
        results = []
        for each in ids:
            try:
                found = one_message(self.cluster, each, dlq_topic(group)).message
            except GatewayError as failure:
                results.append(result_of(each, "CR_THROW_EXCEPTION", str(failure.detail)))
                continue
            stored[found.offset_msg_id.upper()] = each
        with audited(
            request, "deadletter.resend", cluster=self.cluster.name, target=group
        ) as entry:
            outcomes: tuple[Outcome, ...] = ()
            if stored:
                outcomes = resend(self.cluster, group, list(stored), Plan(), by=request.user)
            entry.outcomes([*outcomes, *({"error": each["remark"]} for each in results)])
        return results + [
            result_of(
                stored[each.id.upper()],
                RESULTS.get(each.result, "CR_THROW_EXCEPTION"),
                str(each.reason),
            )
            for each in outcomes
        ]


class Export(ClassicCall):
    def get(self, request: Request) -> HttpResponse:
        """One dead letter as CSV, which spreadsheets open; Classic gives an Excel file."""
        group, msg_id = self.text("consumerGroup"), self.text("msgId")
        message = one_message(self.cluster, msg_id, dlq_topic(group)).message
        if message.topic != dlq_topic(group):
            raise NotFound(_("The group has no such dead letter."))
        view = message_view(message)
        buffer = StringIO()
        writer = csv.writer(buffer)
        writer.writerow(COLUMNS)
        writer.writerow([csv_cell(name, view[name]) for name in COLUMNS])
        return HttpResponse(
            buffer.getvalue(),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": 'attachment; filename="dlq.csv"'},
        )


def read_wanted(data: Any) -> list[tuple[str, str]]:
    """Groups and ids of `[{"consumerGroup": …, "msgId": …}, …]`."""
    usable = isinstance(data, list) and 0 < len(data) <= RESEND_MESSAGES_MAX
    wanted = []
    for each in data if usable else ():
        group, msg_id = (each.get(name) if isinstance(each, dict) else None for name in FIELDS)
        if not (is_name(group) and is_name(msg_id)):
            usable = False
            break
        wanted.append((str(group), str(msg_id)))
    if not usable:
        raise Unusable(
            _("Expected a list of 1 to %(most)d objects with consumerGroup and msgId.")
            % {"most": RESEND_MESSAGES_MAX}
        )
    return wanted


FIELDS = ("consumerGroup", "msgId")


def is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= NAME_CHARS_MAX and "\x00" not in value


def result_of(msg_id: str, result: str, remark: str) -> dict[str, Any]:
    return {"consumeResult": result, "remark": remark or None, "msgId": msg_id}

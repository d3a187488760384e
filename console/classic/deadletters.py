"""/dlqMessage/…: list, resend and export of dead letters."""

from typing import Any

from django.http import HttpResponse
from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.response import Response

from console.areas.deadletters.ledger import resend
from console.audit.recording import audited
from console.classic.base import ClassicCall, success
from console.classic.messages import message_view, one_message, page_of, read_body
from console.frame.access import Need, needs
from console.frame.csv_cells import csv_line
from console.gateway import GatewayError, NotFound, Unusable
from console.gateway.dead_letters.resend import RESEND_MESSAGES_MAX, Outcome, Plan, Result
from core_broker.message.topics import DLQ_PREFIX, dlq_topic

NAME_CHARS_MAX = 255
COLUMNS = (
    *("topic", "msgId", "bornHost", "bornTimestamp", "storeTimestamp", "reconsumeTimes"),
    *("properties", "messageBody", "bodyCRC"),
)
RESULTS = {Result.SENT: "CR_SUCCESS", Result.SKIPPED: "CR_LATER"}


@needs(Need.READ)
class DeadLetterPage(ClassicCall):
    def post(self, request: Request) -> Response:
        """The dead letters of a group; an empty page for a group without dead letters."""
        fields = read_body(request.data)
        topic = str(fields.get("topic") or dlq_topic(str(fields.get("consumerGroup", ""))))
        if not topic.startswith(DLQ_PREFIX):  # other topics are messages, not dead letters
            raise Unusable(_("The parameter “%(name)s” is missing or invalid.") % {"name": "topic"})
        try:
            return success(page_of(self.cluster, topic, fields))
        except NotFound:
            page = {"content": [], "totalElements": 0, "totalPages": 0, "number": 0}
            return success({"page": page, "taskId": None})


class Resend(ClassicCall):
    actions = {"post": "deadletter.resend"}

    def post(self, request: Request) -> Response:
        """Resend dead letters to the retry topic of their group, with a result per message.

        Classic pushes a message to one consumer instead; Gantry uses the retry topic.
        """
        requested = read_requested(request.data)
        results: list[dict[str, Any]] = []
        for group in dict.fromkeys(group for group, _id in requested):
            ids = [msg_id for of_group, msg_id in requested if of_group == group]
            results += self.of_group(request, group, ids)
        return success(results)

    def of_group(self, request: Request, group: str, ids: list[str]) -> list[dict[str, Any]]:
        stored: dict[str, str] = {}
        results = []
        for msg_id in ids:
            try:
                message = one_message(self.cluster, msg_id, dlq_topic(group)).message
            except GatewayError as failure:
                results.append(result_of(msg_id, "CR_THROW_EXCEPTION", str(failure.detail)))
                continue
            stored[message.offset_msg_id.upper()] = msg_id
        with audited(
            request, "deadletter.resend", cluster=self.cluster.name, target=group
        ) as entry:
            outcomes: tuple[Outcome, ...] = ()
            if stored:
                outcomes = resend(self.cluster, group, list(stored), Plan(), by=request.user)
            entry.outcomes([*outcomes, *({"error": result["remark"]} for result in results)])
        return results + [
            result_of(
                stored[outcome.id.upper()],
                RESULTS.get(outcome.result, "CR_THROW_EXCEPTION"),
                str(outcome.reason),
            )
            for outcome in outcomes
        ]


class Export(ClassicCall):
    def get(self, request: Request) -> HttpResponse:
        """A dead letter as CSV; Classic returns an Excel file."""
        group, msg_id = self.text("consumerGroup"), self.text("msgId")
        message = one_message(self.cluster, msg_id, dlq_topic(group)).message
        if message.topic != dlq_topic(group):
            raise NotFound(_("The group has no such dead letter."))
        view = message_view(message)
        return HttpResponse(
            csv_line(COLUMNS) + csv_line(view[name] for name in COLUMNS),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": 'attachment; filename="dlq.csv"'},
        )


def read_requested(data: Any) -> list[tuple[str, str]]:
    """Groups and message ids of `[{"consumerGroup": …, "msgId": …}, …]`."""
    usable = isinstance(data, list) and 0 < len(data) <= RESEND_MESSAGES_MAX
    requested = []
    for item in data if usable else ():
        group, msg_id = (item.get(name) if isinstance(item, dict) else None for name in FIELDS)
        if not (is_name(group) and is_name(msg_id)):
            usable = False
            break
        requested.append((str(group), str(msg_id)))
    if not usable:
        raise Unusable(
            _("Expected a list of 1 to %(most)d objects with consumerGroup and msgId.")
            % {"most": RESEND_MESSAGES_MAX}
        )
    return requested


FIELDS = ("consumerGroup", "msgId")


def is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= NAME_CHARS_MAX and "\x00" not in value


def result_of(msg_id: str, result: str, remark: str) -> dict[str, Any]:
    return {"consumeResult": result, "remark": remark or None, "msgId": msg_id}

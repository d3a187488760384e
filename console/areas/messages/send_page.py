"""The page that sends a message."""

from dataclasses import asdict
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from console.areas.messages.drafts import DraftForm, again
from console.areas.messages.views import known_topics, stored_message
from console.audit.recording import audited
from console.frame.access import Need, needs
from console.frame.masking import mask_of_everybody
from console.frame.pages import ClusterPage, Crumb
from console.gateway import GatewayError, MaskedFields
from console.gateway.messages.masks import HIDDEN
from console.gateway.messages.send import (
    DEFAULT_LEVELS,
    PRODUCER_GROUP,
    Draft,
    MessageType,
    SendChoices,
    Sent,
    send,
    send_choices,
)

#: Maximum number of messages listed after a send.
SENT_SHOWN_MAX = 20
SENT_KEY = "messages_sent"


@needs(Need.WRITE)
class SendPage(ClusterPage):
    """Form to send a message, empty or filled from a stored message (`?again=<offset id>`)."""

    template = "message/send.html"
    actions = {"post": "message.send"}

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        initial: dict[str, Any] = {
            "topic": request.GET.get("topic", ""),
            "type": request.GET.get("type", MessageType.NORMAL.value),
            "producer_group": PRODUCER_GROUP,
        }
        if stored := request.GET.get("again"):
            ref = stored_message(self, stored)
            if ref.masked:  # `***` must not be sent in place of the value
                raise MaskedFields(ref.message.topic)
            initial |= again(ref.message)
        return self.form(DraftForm(initial=initial), str(initial["topic"]))

    def post(self, request: HttpRequest, cluster: str) -> HttpResponse:
        form = DraftForm(request.POST)
        topic = request.POST.get("topic", "").strip()
        form.offer(self.choices(topic)[0])
        if not form.is_valid():
            return self.form(form, topic, status=422)
        draft = form.draft()
        try:
            with audited(request, "message.send", cluster=cluster, target=topic) as entry:
                sent = self.cluster.do(send, draft)
                entry.after = audit_summary(cluster, draft, sent)
        except GatewayError as failure:
            return self.form(form, topic, status=failure.status, trouble=failure)
        request.session[SENT_KEY] = {
            "topic": topic,
            "count": len(sent),
            "type": draft.type.value,
            "outcome": draft.outcome.value if draft.type is MessageType.TRANSACTION else "",
            "items": [asdict(message) for message in sent[:SENT_SHOWN_MAX]],
        }
        return redirect("message:sent", cluster=cluster)

    def choices(self, topic: str) -> tuple[SendChoices, GatewayError | None]:
        """Queues and delay levels of the topic, or defaults with the error."""
        nothing = SendChoices((), tuple(DEFAULT_LEVELS.split()))
        if not topic:
            return nothing, None
        try:
            return self.cluster.ask(send_choices, topic).value, None
        except GatewayError as trouble:
            return nothing, trouble

    def form(
        self,
        form: DraftForm,
        topic: str,
        *,
        status: int = 200,
        trouble: GatewayError | None = None,
    ) -> HttpResponse:
        choices, unusable = self.choices(topic)
        form.offer(choices)
        return self.show(
            title=_("Send a message"),
            crumbs=[Crumb(_("Messages"), list_url(self)), Crumb(_("Send"))],
            form=form,
            topics=[row.name for row in known_topics(self.request, self.cluster)],
            trouble=trouble or unusable,
            status=status,
        )


@needs(Need.WRITE)
class SentPage(ClusterPage):
    """Result of the last send: message ids with links."""

    template = "message/sent.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        sent = request.session.get(SENT_KEY)
        if not sent:
            return redirect("message:send", cluster=cluster)
        crumbs = [
            Crumb(_("Messages"), list_url(self)),
            Crumb(_("Send"), reverse("message:send", kwargs={"cluster": cluster})),
            Crumb(_("Sent messages")),
        ]
        return self.show(title=_("Sent messages"), crumbs=crumbs, sent=sent)


def audit_summary(cluster: str, draft: Draft, sent: tuple[Sent, ...]) -> dict[str, Any]:
    """Audit entry of sent messages, without bodies and masked keys."""
    mask = mask_of_everybody(cluster)
    keys = [HIDDEN] if draft.keys and mask.keys_hidden(draft.topic) else list(draft.keys)
    tags = HIDDEN if draft.tags and mask.tags_hidden(draft.topic) else draft.tags
    return {
        "type": draft.type.value,
        "count": len(sent),
        "tags": tags,
        "keys": keys,
        "body_bytes": len(draft.body),
        "msg_ids": [message.msg_id for message in sent[:SENT_SHOWN_MAX]],
    }


def list_url(page: ClusterPage) -> str:
    return reverse("message:list", kwargs={"cluster": page.cluster.name})

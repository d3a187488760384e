"""Request parameters of pages, REST resources and replays, converted for the gateway.

Parameters are plain JSON: `{"filter": {…}, "target": …, "topic": …, "edit": {…}, "again": …}`,
validated by serializers and forms.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from rest_framework.request import Request

from console.areas.deadletters.states import DeadLetterState, ids_of_state
from console.frame import permissions
from console.frame.access import Need, check_may
from console.frame.masking import mask_of
from console.gateway.dead_letters.edits import NO_EDIT, Edit
from console.gateway.dead_letters.resend import Plan, Target
from console.gateway.dead_letters.search import DeadLetterFilter
from console.gateway.engine.errors import Unusable
from console.gateway.messages.schemas.decoder import NO_DECODER
from console.services.schemas.stored import decoder_of

TEXTS = ("key", "tag", "topic", "text")


def filter_of(cluster: str, group: str, asked: Mapping[str, Any]) -> DeadLetterFilter:
    """The filter of a search. A state becomes the current ids of the ledger; a text is searched in
    bodies with a schema, too."""
    only, without = None, frozenset[str]()
    if asked.get("state"):
        only, without = ids_of_state(cluster, group, DeadLetterState(asked["state"]))
    return DeadLetterFilter(
        begin_ms=asked.get("begin_ms"),
        end_ms=asked.get("end_ms"),
        only=only,
        without=without,
        decoder=decoder_of(cluster) if asked.get("text") else NO_DECODER,
        **{name: str(asked.get(name) or "") for name in TEXTS},
    )


def edit_of(asked: Mapping[str, Any]) -> Edit:
    """The edit of a resend. Raises Unusable for invalid Base64."""
    if not asked:
        return NO_EDIT
    body = None
    if asked.get("body_base64") is not None:
        try:
            body = base64.b64decode(asked["body_base64"], validate=True)
        except (binascii.Error, ValueError):
            raise Unusable(_("The body is not valid Base64.")) from None
    elif asked.get("body") is not None:
        body = str(asked["body"]).encode()
    keys = asked.get("keys")
    return Edit(
        body=body,
        tags=asked.get("tags"),
        keys=None if keys is None else tuple(keys),
        properties=tuple((asked.get("properties") or {}).items()),
        removed=tuple(asked.get("remove") or ()),
    )


def for_user(request: HttpRequest | Request, cluster: str, plan: Plan) -> Plan:
    """Return the plan with the mask of the user.

    Raises PermissionDenied for a plan that sends to a named topic without the right to send
    messages there.
    """
    if plan.target is Target.TOPIC:
        check_may(request, Need.WRITE, permissions.Target("messages", cluster, plan.topic))
    return replace(plan, mask=mask_of(request.user, cluster))


def plan_of(asked: Mapping[str, Any], *, dry_run: bool = False) -> Plan:
    """The plan of a resend. Raises Unusable for an invalid plan."""
    plan = Plan(
        target=Target(asked.get("target") or Target.RETRY),
        topic=asked.get("topic") or "",
        edit=edit_of(asked.get("edit") or {}),
        dry_run=dry_run,
    )
    return plan.checked()

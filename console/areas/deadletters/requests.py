"""What is asked for, in one form for pages, REST resources and the rows of replays.

A wish is plain JSON: `{"filter": {…}, "target": …, "topic": …, "edit": {…}, "again": …}`. What
serializers and forms have checked becomes here what the gateway takes.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _

from console.areas.deadletters.states import DeadLetterState, ids_of_state
from console.gateway.dead_letters.edits import NO_EDIT, Edit
from console.gateway.dead_letters.resend import Plan, Target
from console.gateway.dead_letters.search import DeadLetterFilter
from console.gateway.engine.errors import Unusable

TEXTS = ("key", "tag", "topic", "text")


def filter_of(cluster: str, group: str, asked: Mapping[str, Any]) -> DeadLetterFilter:
    """The filter of a search; a mark becomes the ids that the ledger has for it now."""
    only, without = None, frozenset[str]()
    if asked.get("state"):
        only, without = ids_of_state(cluster, group, DeadLetterState(asked["state"]))
    return DeadLetterFilter(
        begin_ms=asked.get("begin_ms"),
        end_ms=asked.get("end_ms"),
        only=only,
        without=without,
        **{name: str(asked.get(name) or "") for name in TEXTS},
    )


def edit_of(asked: Mapping[str, Any]) -> Edit:
    """Raises Unusable for Base64 that is none."""
    if not asked:
        return NO_EDIT
    body = None
    if asked.get("body_base64") is not None:
        try:
            body = base64.b64decode(asked["body_base64"], validate=True)
        except (binascii.Error, ValueError):
            raise Unusable(_("The body is not Base64.")) from None
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


def plan_of(asked: Mapping[str, Any], *, dry_run: bool = False) -> Plan:
    """The plan of a resend; raises Unusable when it cannot be carried out."""
    plan = Plan(
        target=Target(asked.get("target") or Target.RETRY),
        topic=asked.get("topic") or "",
        edit=edit_of(asked.get("edit") or {}),
        dry_run=dry_run,
    )
    return plan.checked()

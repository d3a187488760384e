"""Writing of audit rows: begun before the action, completed once after the action."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import DatabaseError
from django.http import HttpRequest
from django.utils import timezone
from rest_framework.request import Request

from console.audit import models
from console.audit.masking import kept
from console.audit.models import TARGET_CHARS_MAX, AuditRow
from console.audit.retention import prune_after_insert
from console.frame.access import role_of

log = logging.getLogger(__name__)

OUTCOMES_KEPT_MAX = 200
REASON_CHARS_MAX = 2_000
#: Values of `result` that mark an item's outcome as failed.
FAILED_WORDS = frozenset({"failed", "error", "refused", "denied"})
API_PREFIX = "/api/"


class Entry:
    """The audit row of a running action.

    Callers set `target`, `after` and outcomes during the action.
    """

    def __init__(self, pk: int) -> None:
        self.pk = pk
        self.target: str | None = None
        self.after: Any = None
        self._result = "done"
        self._reason = ""
        self._outcomes: dict[str, Any] | None = None

    def outcomes(self, outcomes: Iterable[Any]) -> None:
        """Record results per broker or item, with `error` (None on success) or `result`."""
        every = [kept(each) for each in outcomes]
        failed = [each for each in every if _failed(each)]
        first = sorted(every, key=lambda each: not _failed(each))[:OUTCOMES_KEPT_MAX]
        self._outcomes = {"total": len(every), "failed": len(failed), "items": first}
        if failed:
            self._result = "failed" if len(failed) == len(every) else "partly"
            self._reason = str(failed[0].get("error") or failed[0].get("reason") or "")

    def failed(self, reason: object) -> None:
        """Mark the action as failed without an exception."""
        self._result, self._reason = "failed", str(reason)

    def complete(self) -> None:
        """Write the result once. A database error is only logged: the action is already done."""
        changes: dict[str, Any] = {
            "finished_at": timezone.now(),
            "after": kept(self.after),
            "outcomes": self._outcomes,
            "result": self._result,
            "reason": plain(self._reason)[:REASON_CHARS_MAX],
        }
        if self.target is not None:
            changes["target"] = plain(self.target)[:TARGET_CHARS_MAX]
        try:
            AuditRow.house.filter(pk=self.pk, result="begun").update(**changes)
        except DatabaseError:
            log.exception("audit row %s stays “begun”: %s", self.pk, changes["result"])


@contextmanager
def audited(
    request: HttpRequest | Request,
    action: str,
    *,
    cluster: str = "",
    target: str = "",
    before: Any = None,
) -> Iterator[Entry]:
    """Run an action of a request and record an audit row.

    A row that cannot be written prevents the action.
    """
    facts = facts_of(request)
    with _running(action, cluster=cluster, target=target, before=before, **facts) as entry:
        yield entry


@contextmanager
def audited_as(
    user: AbstractBaseUser | AnonymousUser | None,
    action: str,
    *,
    cluster: str = "",
    target: str = "",
    before: Any = None,
) -> Iterator[Entry]:
    """Like `audited`, for a job; `user` started the job, None means the schedule."""
    facts = {**facts_of_user(user), "via": "job"}
    with _running(action, cluster=cluster, target=target, before=before, **facts) as entry:
        yield entry


@contextmanager
def _running(action: str, **facts: Any) -> Iterator[Entry]:
    entry = Entry(write_row(action, "begun", **facts))
    try:
        yield entry
    except BaseException as error:
        entry.failed(getattr(error, "detail", None) or str(error) or type(error).__name__)
        entry.complete()
        raise
    entry.complete()


def write_row(
    action: str, result: str, *, target: str = "", before: Any = None, **facts: Any
) -> int:
    """Add a row and return the row's number; retention runs every ROWS_BETWEEN_PRUNES rows."""
    row = models.AuditRow(
        at=timezone.now(),
        action=plain(action)[: models.ACTION_CHARS_MAX],
        result=result,
        target=plain(target)[: models.TARGET_CHARS_MAX],
        before=kept(before),
        **facts,
    )
    row.save(force_insert=True)
    prune_after_insert(row.pk)
    return int(row.pk)


def facts_of(request: HttpRequest | Request) -> dict[str, Any]:
    """Return user, role, token, channel, source address and request id of a request."""
    meta = request.META
    return {
        **facts_of_user(request.user),
        "via": "api" if request.path_info.startswith(API_PREFIX) else _via(request),
        "source": str(meta.get("REMOTE_ADDR") or "")[:64],
        "request_id": str(getattr(request, "request_id", ""))[:64],
    }


def facts_of_user(user: AbstractBaseUser | AnonymousUser | None) -> dict[str, Any]:
    return {
        "username": user.get_username() if user is not None else "",
        "role": str(role_of(user) or ""),
        "token": str(getattr(user, "token_name", "")),
    }


def _via(request: HttpRequest | Request) -> str:
    match = request.resolver_match
    return "classic" if match is not None and "classic" in match.app_names else "page"


def _failed(outcome: Any) -> bool:
    if not isinstance(outcome, dict):
        return False
    return bool(outcome.get("error")) or str(outcome.get("result", "")) in FAILED_WORDS


def plain(text: object) -> str:
    """Return text that every database accepts: no NUL, no lone surrogates."""
    return str(text).replace("\x00", "�").encode("utf-8", "replace").decode()

"""Forms that are older than the object they change.

A form posts the version of the object that its page has shown (`parts/version.html`). After another
change, the page shows the form again, with its input, an error and the new version: the next press
of the button overwrites the other change. REST requests pass the version as `If-Match`.

`locked` makes check and save one step: of two simultaneous changes of the same version, one is
refused.
"""

import hashlib
import json
from typing import Any, Final, TypeVar

from django.db import connection, models
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from console.gateway import NotFound
from console.gateway.changes import check_unchanged

#: Field of the form with the version.
VERSION: Final = "version"
VERSION_CHARS: Final = 16
CHANGED_MEANWHILE: Final = _(
    "Somebody else has changed this since you opened the page. Your input is kept: save again to "
    "overwrite the other change."
)


M = TypeVar("M", bound=models.Model)


def version_of(*state: Any) -> str:
    """Return the version of an object with these values."""
    # JSON: a member of an enumeration and its stored text are the same value.
    text = json.dumps(state, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:VERSION_CHARS]


def shown_version(request: HttpRequest, current: str) -> str:
    """Return the posted version for a form that is shown again, else the current version."""
    return request.POST.get(VERSION) or current


def is_outdated(request: HttpRequest, current: str) -> bool:
    """Whether the form was opened before the last change. A request without a version is not."""
    given = request.POST.get(VERSION)
    return bool(given) and given != current


def check_posted(request: HttpRequest, current: str) -> None:
    """Raise PreconditionFailed for a form that was opened before the last change."""
    check_unchanged(posted_version(request), current)


def posted_version(request: HttpRequest) -> str | None:
    """Return the version that a change of this form expects; None: any version."""
    return request.POST.get(VERSION) or None


def locked(row: M, gone: Any) -> M:
    """Return the stored row, locked until the end of the transaction that the caller has begun.

    PostgreSQL locks the row; SQLite has locked the database at the begin of the transaction
    (`transaction_mode` in the settings). Raises NotFound with the text `gone` for a deleted row.
    """
    assert connection.in_atomic_block
    found = type(row)._default_manager.select_for_update().filter(pk=row.pk).first()
    if found is None:
        raise NotFound(gone)
    return found

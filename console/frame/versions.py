"""Forms that are older than the object they change.

A form posts the version of the object that its page has shown (`parts/version.html`). After another
change, the page shows the form again, with its input, an error and the new version: the next press
of the button overwrites the other change.
"""

import hashlib
from typing import Any, Final

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

#: Field of the form with the version.
VERSION: Final = "version"
VERSION_CHARS: Final = 16
CHANGED_MEANWHILE: Final = _(
    "Somebody else has changed this since you opened the page. Your input is kept: save again to "
    "overwrite the other change."
)


def version_of(*state: Any) -> str:
    """Return the version of an object with these values."""
    return hashlib.sha256(repr(state).encode()).hexdigest()[:VERSION_CHARS]


def shown_version(request: HttpRequest, current: str) -> str:
    """Return the posted version for a form that is shown again, else the current version."""
    return request.POST.get(VERSION) or current


def is_outdated(request: HttpRequest, current: str) -> bool:
    """Whether the form was opened before the last change. A request without a version is not."""
    given = request.POST.get(VERSION)
    return bool(given) and given != current

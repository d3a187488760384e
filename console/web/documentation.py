"""The documentation site below /docs/: the folder that `make site` builds, or another address.

`CONSOLE_DOCUMENTATION` names the folder or the address. Everybody may read the site. Pages link to
each other by relative addresses, so the site works below every prefix; the content policy is that
of the console (`tools/site/content_policy.py`).
"""

from pathlib import Path
from typing import Final

from django.conf import settings
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotModified,
    HttpResponseRedirect,
)
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import http_date
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe
from django.views.static import was_modified_since

from console.frame.access import Need, needs
from console.frame.pages import Crumb
from console.web.static_files import NAME, content_type_of

FIRST_PAGE: Final = "index.html"
#: First page of languages with pages of their own.
FIRST_PAGES: Final = {"zh-hans": "zh/index.html"}
ADDRESSES: Final = ("http://", "https://")


@needs(Need.OPEN)
@require_safe
def documentation(request: HttpRequest) -> HttpResponseBase:
    """Lead to the first page in the user's language; say how to build a site that is not there."""
    if settings.DOCUMENTATION.startswith(ADDRESSES):
        return HttpResponseRedirect(settings.DOCUMENTATION)
    for name in (FIRST_PAGES.get(get_language() or "", FIRST_PAGE), FIRST_PAGE):
        if site_file(name):
            return HttpResponseRedirect(reverse("documentation-file", kwargs={"name": name}))
    title = _("Documentation")
    return render(request, "documentation.html", {"title": title, "crumbs": [Crumb(title)]})


@needs(Need.OPEN)
@require_safe
def documentation_file(request: HttpRequest, name: str) -> HttpResponseBase:
    """Serve one file of the site."""
    file = site_file(name)
    if file is None:
        raise Http404
    modified = int(file.stat().st_mtime)
    if not was_modified_since(request.headers.get("If-Modified-Since"), modified):
        return HttpResponseNotModified()
    response = HttpResponse(file.read_bytes(), content_type=content_type_of(name))
    response.headers["Last-Modified"] = http_date(modified)
    return response


def site_file(name: str) -> Path | None:
    """Return the path of a file of the site; None for other names and without a site."""
    if settings.DOCUMENTATION.startswith(ADDRESSES) or not NAME.fullmatch(name):
        return None
    file = Path(settings.DOCUMENTATION) / name
    return file if file.is_file() else None

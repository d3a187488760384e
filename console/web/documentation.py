"""The documentation site below /docs/: the folder that `make site` builds, or another address.

`CONSOLE_DOCUMENTATION` names the folder or the address. Everybody may read the site. Pages link to
each other by relative addresses, so the site works below every prefix; the content policy is that
of the console (`tools/site/content_policy.py`).
"""

from functools import lru_cache
from pathlib import Path
from typing import Final

from django.conf import settings
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
)
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import get_conditional_response
from django.utils.http import http_date
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from console.frame.access import Need, needs
from console.frame.pages import Crumb
from console.web.static_files import NAME, StaticFile, packed_file

FIRST_PAGE: Final = "index.html"
#: First page of languages with pages of their own.
FIRST_PAGES: Final = {"zh-hans": "zh/index.html"}
ADDRESSES: Final = ("http://", "https://")
#: Maximum number of files in memory; a site of today has 240, of 18 MB.
FILES_MAX: Final = 512
#: Not public: a middleware may add a cookie of the user.
KEEP: Final = "private, max-age=60"


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
    """Serve one file of the site, compressed for browsers that can read that."""
    path = site_file(name)
    if path is None:
        raise Http404
    status = path.stat()
    file = _packed(path, status.st_mtime_ns)
    is_packed = file.packed is not None and "gzip" in request.headers.get("Accept-Encoding", "")
    body = file.packed if is_packed else file.body
    response = HttpResponse(body, content_type=file.content_type)
    if is_packed:
        response.headers["Content-Encoding"] = "gzip"
    modified = int(status.st_mtime)
    response.headers["ETag"] = etag = f'"{file.digest}"'
    response.headers["Last-Modified"] = http_date(modified)
    response.headers["Vary"] = "Accept-Encoding"
    response.headers["Cache-Control"] = KEEP
    answer = get_conditional_response(request, etag, modified, response)
    return answer or response


@lru_cache(FILES_MAX)
def _packed(path: Path, _modified_ns: int) -> StaticFile:
    """Return the file as it is since `_modified_ns`: a new build has new times."""
    return packed_file(path)


def site_file(name: str) -> Path | None:
    """Return the path of a file of the site; None for other names and without a site."""
    if settings.DOCUMENTATION.startswith(ADDRESSES) or not NAME.fullmatch(name):
        return None
    file = Path(settings.DOCUMENTATION) / name
    return file if file.is_file() else None

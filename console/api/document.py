"""The OpenAPI document. To generate it takes 0.4 s of CPU, so it is kept for some minutes.

Everybody may read the document. Unknown parameters and media types are ignored, so that the cache
holds at most one document per format and language.
"""

from functools import wraps
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.utils.http import urlencode
from django.views.decorators.cache import cache_page
from drf_spectacular.views import SpectacularAPIView

#: Freshness of the document, seconds.
DOCUMENT_FRESH_S: Final = 300
_JSON: Final = "application/vnd.oai.openapi+json"
_YAML: Final = "application/vnd.oai.openapi"
_cached = cache_page(DOCUMENT_FRESH_S)(SpectacularAPIView.as_view())


@wraps(_cached, assigned=())  # the access rules look for the class of the view
def document(request: HttpRequest) -> HttpResponseBase:
    """Serve the document, as YAML unless `format` or the Accept header names JSON."""
    choices = {"format": {"json", "yaml"}, "lang": {code for code, _name in settings.LANGUAGES}}
    known = {
        name: request.GET[name]
        for name, values in choices.items()
        if request.GET.get(name) in values
    }
    accept = request.META.get("HTTP_ACCEPT", "")
    request.META["QUERY_STRING"] = urlencode(known)
    request.GET = QueryDict(request.META["QUERY_STRING"])
    request.META["HTTP_ACCEPT"] = _JSON if "json" in accept else _YAML
    return _cached(request)

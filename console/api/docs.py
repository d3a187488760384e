"""API documentation page: the vendored Swagger UI; the content policy allows inline styles."""

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.request import Request
from rest_framework.response import Response

from console.frame.access import Need, needs
from console.frame.content_policy import CONTENT_POLICY
from console.frame.pages import Crumb

#: Swagger UI writes style attributes; no other page needs 'unsafe-inline'.
DOCS_POLICY = f"{CONTENT_POLICY}; style-src 'self' 'unsafe-inline'"


@needs(Need.OPEN)
class DocsPage(SpectacularSwaggerSplitView):  # type: ignore[misc,unused-ignore]
    """Shows no data of a cluster; a test request needs a session or a token."""

    template_name = "api/docs.html"

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        response: Response = super().get(request, *args, **kwargs)
        response.data |= {"title": _("REST API"), "crumbs": [Crumb(_("REST API"))]}
        response.headers["Content-Security-Policy"] = DOCS_POLICY
        return response

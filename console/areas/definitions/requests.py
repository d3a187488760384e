"""Who may copy from which cluster."""

from django.conf import settings
from django.http import HttpRequest
from rest_framework.request import Request

from console.frame.access import Need, may
from console.frame.permissions import Target

RESOURCE = "definitions"


def may_copy(request: HttpRequest | Request, source: str) -> bool:
    """True when the user may export the definitions of the cluster."""
    return may(request.user, Need.ADMIN, Target(RESOURCE, source))


def readable_sources(request: HttpRequest | Request, cluster: str) -> list[str]:
    """Names of the other clusters that the user may copy from."""
    names = [name for name in settings.CONSOLE_CLUSTERS if name != cluster]
    return [name for name in names if may_copy(request, name)]

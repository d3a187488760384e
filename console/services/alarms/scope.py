"""The right to change receivers, and the rules and silences of all clusters."""

from django.http import HttpRequest
from rest_framework.request import Request

from console.frame.access import Need, check_may
from console.frame.permissions import Target

RESOURCE = "alarms"
#: The cluster of a rule or silence of all clusters.
ALL_CLUSTERS = ""


def check_scope(request: HttpRequest | Request, need: Need, *clusters: str) -> None:
    """Raise PermissionDenied without the permission for all clusters, when one of `clusters` is
    ALL_CLUSTERS. The permission for the cluster of the URL is checked before the view.
    """
    if ALL_CLUSTERS in clusters:
        check_may(request, need, Target(RESOURCE))

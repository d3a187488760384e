"""The area `clusters`."""

from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig


class ClustersConfig(AreaConfig):
    name = "console.services.clusters"
    label = "clusters"
    title = _("Cluster")
    icon = "activity"
    start = "overview"

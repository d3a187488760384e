"""The area `findings`: the verdict on a cluster, reached by the tabs of the cluster's pages."""

from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig


class FindingsConfig(AreaConfig):
    name = "console.services.findings"
    label = "findings"
    title = _("Findings")
    icon = "alert-triangle"
    parent = "clusters"
    in_navigation = False

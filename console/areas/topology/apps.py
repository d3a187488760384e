"""The area `topology`."""

from django.utils.translation import pgettext_lazy

from console.frame.areas import AreaConfig


class TopologyConfig(AreaConfig):
    name = "console.areas.topology"
    label = "topology"
    title = pgettext_lazy("cluster", "Topology")
    icon = "sitemap"
    start = "live"

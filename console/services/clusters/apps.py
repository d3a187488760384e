"""The area `clusters`."""

from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig
from console.gateway import gateway
from console.gateway.brokers.listing import broker_rows


class ClustersConfig(AreaConfig):
    name = "console.services.clusters"
    label = "clusters"
    name_arguments = ("broker",)
    title = _("Cluster")
    icon = "activity"
    start = "overview"

    def ready(self) -> None:
        from console.services.clusters.credentials import DatabaseCredentials
        from console.services.clusters.memory import DatabaseMemory
        from console.services.clusters.read_only import is_read_only

        gateway.memory = DatabaseMemory()
        gateway.credentials = DatabaseCredentials()
        gateway.read_only = is_read_only
        gateway.watched = broker_rows

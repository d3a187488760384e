"""The area `clients`."""

from django.utils.translation import gettext_lazy as _

from console.areas import AreaConfig


class ClientsConfig(AreaConfig):
    name = "console.clients"
    label = "clients"
    title = _("Clients")
    icon = "plug"

    def ready(self) -> None:
        from console.clients import exporting
        from console.exports import tables

        for table in exporting.TABLES:
            tables.register(table)

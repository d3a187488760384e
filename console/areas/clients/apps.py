"""The area `clients`."""

from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig


class ClientsConfig(AreaConfig):
    name = "console.areas.clients"
    label = "clients"
    name_arguments = ("client",)
    title = _("Clients")
    icon = "plug"

    def ready(self) -> None:
        from console.areas.clients import export
        from console.services.exports import tables

        for table in export.TABLES:
            tables.register(table)

"""The area `pending`."""

from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig


class PendingConfig(AreaConfig):
    name = "console.areas.pending"
    label = "pending"
    title = _("Delayed messages")
    icon = "hourglass"
    start = "delayed"

    def ready(self) -> None:
        from console.areas.pending import export
        from console.services.exports import tables

        tables.register(export.TABLE)

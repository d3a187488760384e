"""The area `topics`."""

from django.utils.translation import gettext_lazy as _

from console.areas import AreaConfig


class TopicsConfig(AreaConfig):
    name = "console.topics"
    label = "topics"
    title = _("Topics")
    icon = "stack-2"

    def ready(self) -> None:
        from console.exports import tables
        from console.topics import exporting

        tables.register(exporting.TABLE)

"""The area `groups`."""

from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig


class GroupsConfig(AreaConfig):
    name = "console.areas.groups"
    label = "groups"
    name_arguments = ("group", "name")
    title = _("Groups")
    icon = "users"

    def ready(self) -> None:
        from console.areas.groups import export
        from console.services.exports import tables

        tables.register(export.TABLE)

"""The area `groups`."""

from django.utils.translation import gettext_lazy as _

from console.areas import AreaConfig


class GroupsConfig(AreaConfig):
    name = "console.groups"
    label = "groups"
    title = _("Groups")
    icon = "users"

    def ready(self) -> None:
        from console.exports import tables
        from console.groups import exporting

        tables.register(exporting.TABLE)

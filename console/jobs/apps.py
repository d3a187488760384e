"""The area `jobs`."""

from django.utils.translation import gettext_lazy as _

from console.areas import AreaConfig


class JobsConfig(AreaConfig):
    name = "console.jobs"
    label = "jobs"
    title = _("Jobs")
    icon = "player-play"

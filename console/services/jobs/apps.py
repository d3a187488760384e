"""The area `jobs`."""

from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig


class JobsConfig(AreaConfig):
    name = "console.services.jobs"
    label = "jobs"
    title = _("Jobs")
    icon = "player-play"

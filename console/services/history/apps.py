"""The area of the history: charts on pages of other areas, and a REST resource."""

from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig


class HistoryConfig(AreaConfig):
    name = "console.services.history"
    label = "history"
    title = _("History")
    icon = "history"
    in_navigation = False

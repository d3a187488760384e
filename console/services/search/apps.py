"""Search, recently viewed items and saved views: reached from the search box of every page."""

from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig


class SearchConfig(AreaConfig):
    name = "console.services.search"
    label = "search"
    title = _("Search")
    icon = "search"
    start = "search"
    in_navigation = False

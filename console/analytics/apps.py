"""The area `analytics`."""

from django.utils.translation import gettext_lazy as _

from console.areas import AreaConfig


class AnalyticsConfig(AreaConfig):
    name = "console.analytics"
    label = "analytics"
    title = _("Analytics")
    icon = "chart-line"
    start = "overview"

    def ready(self) -> None:
        from console.analytics.trace_jobs import register_kinds

        register_kinds()

"""The area `analytics`."""

from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig


class AnalyticsConfig(AreaConfig):
    name = "console.services.analytics"
    label = "analytics"
    title = _("Analytics")
    icon = "chart-line"
    start = "overview"

    def ready(self) -> None:
        from console.services.analytics.trace_jobs import register_kinds

        register_kinds()

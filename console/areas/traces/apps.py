"""The area `traces`."""

from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig


class TracesConfig(AreaConfig):
    name = "console.areas.traces"
    label = "traces"
    title = _("Traces")
    icon = "timeline-event"
    start = "find"

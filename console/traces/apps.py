"""The area of traces."""

from django.utils.translation import gettext_lazy as _

from console.areas import AreaConfig


class TracesConfig(AreaConfig):
    name = "console.traces"
    label = "traces"
    title = _("Traces")
    icon = "timeline-event"
    start = "find"

"""The area `topics`."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from console.areas import AreaConfig


class TopicsConfig(AreaConfig):
    name = "console.topics"
    label = "topics"
    title = _("Topics")
    icon = "stack-2"

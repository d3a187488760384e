"""The area of stored messages. Its label is not "messages", which Django's own app has."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from console.areas import AreaConfig


class MessagesConfig(AreaConfig):
    name = "console.messages"
    label = "message"
    title = _("Messages")
    icon = "messages"

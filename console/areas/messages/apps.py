"""The area of stored messages. The app label is "message": django.contrib has "messages"."""

from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig


class MessagesConfig(AreaConfig):
    name = "console.areas.messages"
    label = "message"
    resource = "messages"
    name_arguments = ("topic",)
    title = _("Messages")
    icon = "messages"

    def ready(self) -> None:
        from console.areas.messages import export
        from console.services.jobs import kinds

        kinds.register(
            export.KIND,
            export.work,
            title=_("Export messages"),
            reach=export.reach,
            unit=_("messages"),
            can_pause=True,
            stages={"read": _("Reading")},
            outputs={"rows": _("Rows written"), "left_out": _("Older messages not exported")},
        )

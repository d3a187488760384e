"""Titles of message types, and titles and definitions of the funnel steps."""

from typing import Any, Final

from django.utils.translation import gettext_lazy as _

KIND_TITLES: Final[dict[str, Any]] = {
    "normal": _("normal"),
    "order": _("ordered"),
    "delay": _("delayed"),
    "transaction_half": _("transaction, half"),
    "transaction_commit": _("transaction, committed"),
}
STEPS: Final[dict[str, tuple[Any, Any]]] = {
    "sent": (_("Sent"), _("Messages that producers tried to send.")),
    "stored": (_("Stored"), _("Successful sends.")),
    "delivered": (
        _("Delivered"),
        _("First deliveries to a listener, counted per consumer group."),
    ),
    "succeeded": (_("Succeeded"), _("Messages consumed successfully, at any attempt.")),
    "retried": (_("Retried"), _("Attempts after the first.")),
    "dead": (
        _("Dead-lettered"),
        _("Failed at the last attempt and moved to the dead-letter queue."),
    ),
    "never_consumed": (
        _("Never consumed"),
        _("Stored, but not consumed by a group that subscribes to the message."),
    ),
    "unconfirmed": (
        _("No trace of consumption"),
        _("The subscription or the offsets of the group are unknown: consumed or not."),
    ),
}

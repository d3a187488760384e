"""Names and definitions of what analytics shows."""

from typing import Any, Final

from django.utils.translation import gettext_lazy as _

KIND_TITLES: Final[dict[str, Any]] = {
    "normal": _("normal"),
    "order": _("in order"),
    "delay": _("delayed"),
    "transaction_half": _("transaction, half"),
    "transaction_commit": _("transaction, committed"),
}
STEPS: Final[dict[str, tuple[Any, Any]]] = {
    "sent": (_("Sent"), _("Messages that producers tried to send.")),
    "stored": (_("Stored"), _("Of these, the sends that succeeded.")),
    "delivered": (
        _("Delivered"),
        _("Messages a listener had for the first time; every group that reads a topic counts."),
    ),
    "succeeded": (_("Succeeded"), _("Of these, consumed with success, at whichever attempt.")),
    "retried": (_("Retried"), _("Attempts after the first.")),
    "dead": (_("Dead"), _("Failed at the last attempt and went to the dead letters.")),
    "never_consumed": (
        _("Never consumed"),
        _("Stored, and a group that reads the topic has not had them; by whole hours."),
    ),
}

"""The area `audit`."""

from django.utils.translation import gettext_lazy as _

from console.areas import AreaConfig


class AuditConfig(AreaConfig):
    name = "console.audit"
    label = "audit"
    title = _("Audit")
    icon = "history"
    scope = "console"
    need = "admin"

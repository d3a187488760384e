"""The area `audit`."""

from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig


class AuditConfig(AreaConfig):
    name = "console.audit"
    label = "audit"
    title = _("Audit")
    icon = "list-details"
    scope = "console"
    need = "admin"

    def ready(self) -> None:
        from console.audit.denials import record_denial
        from console.frame.access import access_denied

        access_denied.connect(record_denial, dispatch_uid="audit-denials")

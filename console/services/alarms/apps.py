"""The area `alarms`: active alarms, rules, receivers, silences."""

from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig


class AlarmsConfig(AreaConfig):
    name = "console.services.alarms"
    label = "alarms"
    title = _("Alarms")
    icon = "bell"

    def ready(self) -> None:
        from console.services.alarms import evaluation, metrics
        from console.services.findings.background import evaluated

        evaluated.connect(evaluation.on_evaluated, weak=False, dispatch_uid="alarms")
        metrics.register()

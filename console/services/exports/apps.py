"""The area of exports, opened by the export buttons of lists."""

from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig


class ExportsConfig(AreaConfig):
    name = "console.services.exports"
    label = "exports"
    title = _("Exports")
    icon = "download"
    in_navigation = False
    start = "table"

    def ready(self) -> None:
        from console.services.exports import export_job
        from console.services.jobs import kinds

        kinds.register(
            export_job.KIND,
            export_job.work,
            title=_("Export a list"),
            reach=export_job.reach,
            unit=_("rows"),
            can_pause=True,
            stages={"read": _("Reading")},
            outputs={
                "rows": _("Rows written"),
                "left_out": _("Rows over the row limit"),
                "not_looked_at": _("Rows with unknown filter values"),
                "silent_brokers": _("Brokers with missing metrics"),
            },
        )

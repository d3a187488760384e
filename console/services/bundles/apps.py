"""The debug bundle, started on the page of jobs."""

from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig


class BundlesConfig(AreaConfig):
    name = "console.services.bundles"
    label = "bundles"
    title = _("Debug bundle")
    icon = "file-text"
    in_navigation = False

    def ready(self) -> None:
        from console.frame.access import Need
        from console.services.bundles import job
        from console.services.jobs import kinds

        kinds.register(
            job.KIND,
            job.work,
            title=_("Debug bundle"),
            about=_(
                "A ZIP of versions, settings, findings, alarms, samples and logs, without secrets."
            ),
            need=Need.ADMIN,
            reach=job.reach,
            unit=_("files"),
            by_hand=True,
            stages={"collect": _("Collecting")},
            outputs={"files": _("Files"), "failed": _("Parts that failed")},
        )

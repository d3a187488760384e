"""The area `deadletters`."""

from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig


class DeadLettersConfig(AreaConfig):
    name = "console.areas.deadletters"
    label = "deadletters"
    name_arguments = ("group",)
    title = _("Dead letters")
    icon = "skull"

    def ready(self) -> None:
        from console.areas.deadletters import export, journeys, replays
        from console.areas.traces import broker_events
        from console.services.exports import tables
        from console.services.jobs import kinds

        broker_events.register(journeys.resends_of_journey)
        tables.register(export.TABLE)
        kinds.register(
            replays.KIND,
            replays.work,
            title=_("Resend dead letters"),
            reach=replays.reach,
            unit=_("dead letters"),
            can_pause=True,
            can_continue=True,
            stages={"send": _("Sending")},
            outputs={
                "matched": _("Matched"),
                "sent": _("Sent"),
                "failed": _("Failed"),
                "skipped": _("Skipped"),
            },
            template="deadletters/replay_of_job.html",
        )

"""Rules about settings of brokers: differences between brokers, automatic creation of topics."""

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.services.findings.finding import Finding, Severity, Target
from console.services.findings.rules.rule import Evidence, Results, gaps, listing, rule

AUTO_CREATE = "autoCreateTopicEnable"


@rule("settings-drift", _("Settings are equal on all brokers"))
def settings_drift(evidence: Evidence) -> Results:
    """A setting with different values, without those that name the broker, its addresses and
    folders. Values of secret settings are not compared."""
    settings = evidence.snapshot.settings
    yield from gaps(settings)
    for each in settings.value.settings if settings.value is not None else ():
        if not each.differs or each.own or each.secret:
            continue
        values = sorted(each.values.items())
        yield Finding(
            "settings-drift",
            Severity.ADVICE,
            Target("setting", each.name),
            format_lazy(
                _("The brokers have different values: {values}"),
                values=listing(f"{broker} = {value}" for broker, value in values),
            ),
            _("Give all brokers the same value, unless the difference is intended."),
            {"brokers": dict(values)},
        )


@rule("auto-create", _("Topics are not created automatically"))
def auto_create(evidence: Evidence) -> Results:
    """With autoCreateTopicEnable, a misspelled topic name creates a topic."""
    settings = evidence.snapshot.settings
    yield from gaps(settings)
    found = settings.value.settings if settings.value is not None else ()
    values = next((each.values for each in found if each.name == AUTO_CREATE), {})
    on = sorted(broker for broker, value in values.items() if value.lower() == "true")
    if on:
        yield Finding(
            "auto-create",
            Severity.ADVICE,
            Target("setting", AUTO_CREATE),
            format_lazy(
                _("The first send to an unknown name creates a topic on {brokers}."),
                brokers=listing(on),
            ),
            _("In production, set autoCreateTopicEnable to false and create topics on purpose."),
            {"brokers": on},
        )

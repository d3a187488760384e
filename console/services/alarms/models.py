"""Rules, receivers, silences, episodes, and the outbox of deliveries."""

from typing import Any, Final

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from console.services.alarms.results import text_of
from console.services.findings.finding import Severity

NAME_CHARS_MAX: Final = 120
OBJECT_CHARS_MAX: Final = 512
CLUSTER_CHARS_MAX: Final = 63
WORD_CHARS_MAX: Final = 32
USER_CHARS_MAX: Final = 150
NOTE_CHARS_MAX: Final = 1_000
ERROR_CHARS_MAX: Final = 500

SEVERITIES: Final = [(each.value, each.value) for each in Severity]


class Source(models.TextChoices):
    METRIC = "metric", _("Metric of the history")
    FINDING = "finding", _("Finding")


class Function(models.TextChoices):
    LAST = "last", _("Last value")
    AVERAGE = "average", _("Average of the window")
    GROWTH = "growth", _("Growth within the window")
    DROP = "drop", _("Drop below the average of the window, percent")


class Comparison(models.TextChoices):
    ABOVE = "above", _("above")
    BELOW = "below", _("below")


class ReceiverKind(models.TextChoices):
    WEBHOOK = "webhook", _("Webhook (JSON)")
    MAIL = "mail", _("Mail")
    DINGTALK = "dingtalk", _("DingTalk")
    WECOM = "wecom", _("WeCom")
    SLACK = "slack", _("Slack")


class EpisodeState(models.TextChoices):
    PENDING = "pending", _("Pending")
    FIRING = "firing", _("firing")
    RESOLVED = "resolved", _("resolved")


class Event(models.TextChoices):
    FIRING = "firing", _("firing")
    RESOLVED = "resolved", _("resolved")


class DeliveryState(models.TextChoices):
    WAITING = "waiting", _("waiting")
    SENT = "sent", _("sent")
    FAILED = "failed", _("failed")


class Receiver(models.Model):
    """A place that notices go to. `encrypted` has URL and secret (`receivers.py`)."""

    name = models.CharField(max_length=NAME_CHARS_MAX, unique=True)
    kind = models.CharField(max_length=WORD_CHARS_MAX, choices=ReceiverKind.choices)
    enabled = models.BooleanField(default=True)
    #: Gets the notices of every rule, also of rules that do not name the receiver.
    all_rules = models.BooleanField(default=False)
    language = models.CharField(max_length=WORD_CHARS_MAX, default="en")
    #: Mail addresses, separated by commas.
    recipients = models.TextField(blank=True)
    #: Scheme and host of the URL; the rest of a URL is a secret of most chat programs.
    shown = models.CharField(max_length=OBJECT_CHARS_MAX, blank=True)
    has_secret = models.BooleanField(default=False)
    encrypted = models.TextField(blank=True)
    changed_ms = models.BigIntegerField()
    changed_by = models.CharField(max_length=USER_CHARS_MAX, blank=True)

    def __str__(self) -> str:
        return self.name


class AlarmRule(models.Model):
    """A condition on a metric of the history, or on findings."""

    name = models.CharField(max_length=NAME_CHARS_MAX, unique=True)
    #: Name of a rule that the console brings along; such a rule has a translated name.
    default_key = models.CharField(max_length=WORD_CHARS_MAX, blank=True)
    enabled = models.BooleanField(default=True)
    #: Empty: of all clusters.
    cluster = models.CharField(max_length=CLUSTER_CHARS_MAX, blank=True)
    #: Names of objects with wildcards; empty: all objects.
    pattern = models.CharField(max_length=OBJECT_CHARS_MAX, blank=True)
    source = models.CharField(max_length=WORD_CHARS_MAX, choices=Source.choices)

    scope = models.CharField(max_length=WORD_CHARS_MAX, blank=True)
    metric = models.CharField(max_length=WORD_CHARS_MAX, blank=True)
    function = models.CharField(
        max_length=WORD_CHARS_MAX, choices=Function.choices, default=Function.LAST
    )
    window_s = models.IntegerField(default=300)
    comparison = models.CharField(
        max_length=WORD_CHARS_MAX, choices=Comparison.choices, default=Comparison.ABOVE
    )
    threshold = models.FloatField(default=0)
    #: An alarm resolves at this value; None: at the threshold.
    clear_threshold = models.FloatField(null=True)

    #: Id of a rule of the findings; empty: all rules.
    finding_rule = models.CharField(max_length=64, blank=True)
    #: Findings of this severity and worse.
    finding_severity = models.CharField(max_length=WORD_CHARS_MAX, default=Severity.WARNING.value)

    for_s = models.IntegerField(default=60)
    clear_for_s = models.IntegerField(default=60)
    severity = models.CharField(max_length=WORD_CHARS_MAX, choices=SEVERITIES)
    note = models.TextField(blank=True)
    receivers = models.ManyToManyField(Receiver, blank=True, related_name="rules")
    changed_ms = models.BigIntegerField()
    changed_by = models.CharField(max_length=USER_CHARS_MAX, blank=True)
    #: Objects that met the condition beyond the limit, at the last evaluation.
    left_out = models.IntegerField(default=0)

    def __str__(self) -> str:
        return self.name


class Silence(models.Model):
    """No notices of matching alarms until `until_ms`. Empty fields match everything."""

    cluster = models.CharField(max_length=CLUSTER_CHARS_MAX, blank=True)
    rule = models.ForeignKey(AlarmRule, models.CASCADE, null=True, related_name="silences")
    kind = models.CharField(max_length=WORD_CHARS_MAX, blank=True)
    pattern = models.CharField(max_length=OBJECT_CHARS_MAX, blank=True)
    reason = models.CharField(max_length=NOTE_CHARS_MAX)
    begin_ms = models.BigIntegerField()
    until_ms = models.BigIntegerField()
    created_by = models.CharField(max_length=USER_CHARS_MAX)

    def __str__(self) -> str:
        return self.reason


class Episode(models.Model):
    """The time during which an object meets the condition of a rule."""

    rule = models.ForeignKey(AlarmRule, models.SET_NULL, null=True, related_name="episodes")
    rule_name = models.CharField(max_length=NAME_CHARS_MAX)
    cluster = models.CharField(max_length=CLUSTER_CHARS_MAX)
    kind = models.CharField(max_length=WORD_CHARS_MAX)
    name = models.CharField(max_length=OBJECT_CHARS_MAX, blank=True)
    #: Tells the findings of one object apart; empty for a metric.
    detail = models.CharField(max_length=64, blank=True)
    severity = models.CharField(max_length=WORD_CHARS_MAX, choices=SEVERITIES)
    state = models.CharField(max_length=WORD_CHARS_MAX, choices=EpisodeState.choices)
    #: The condition is met since.
    begun_ms = models.BigIntegerField()
    fired_ms = models.BigIntegerField(null=True)
    #: The condition is not met any more since.
    clear_since_ms = models.BigIntegerField(null=True)
    #: Time of the last evaluation with a known value.
    seen_ms = models.BigIntegerField()
    resolved_ms = models.BigIntegerField(null=True)
    end_reason = models.CharField(max_length=WORD_CHARS_MAX, blank=True)
    value = models.FloatField(null=True)
    #: The problem, by language.
    text: Any = models.JSONField(default=dict)
    #: Time of the decision to send the firing notice; None: silenced until now.
    notified_ms = models.BigIntegerField(null=True)
    acknowledged_ms = models.BigIntegerField(null=True)
    acknowledged_by = models.CharField(max_length=USER_CHARS_MAX, blank=True)
    acknowledged_note = models.CharField(max_length=NOTE_CHARS_MAX, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["rule", "cluster", "kind", "name", "detail"],
                condition=Q(state__in=["pending", "firing"]),
                name="one_open_episode_per_object",
            ),
        )
        indexes = (
            models.Index(fields=["cluster", "state", "fired_ms"], name="episodes_of_a_cluster"),
        )

    def __str__(self) -> str:
        return f"{self.rule_name} · {self.name or self.cluster}"


class Delivery(models.Model):
    """A notice on its way to a receiver: a row of the outbox, kept afterwards."""

    receiver = models.ForeignKey(Receiver, models.SET_NULL, null=True, related_name="deliveries")
    receiver_name = models.CharField(max_length=NAME_CHARS_MAX)
    rule = models.ForeignKey(AlarmRule, models.SET_NULL, null=True, related_name="+")
    rule_name = models.CharField(max_length=NAME_CHARS_MAX)
    cluster = models.CharField(max_length=CLUSTER_CHARS_MAX)
    severity = models.CharField(max_length=WORD_CHARS_MAX)
    event = models.CharField(max_length=WORD_CHARS_MAX, choices=Event.choices)
    note = models.TextField(blank=True)
    created_ms = models.BigIntegerField()
    #: Time of the next attempt.
    due_ms = models.BigIntegerField()
    attempts = models.IntegerField(default=0)
    state = models.CharField(
        max_length=WORD_CHARS_MAX, choices=DeliveryState.choices, default=DeliveryState.WAITING
    )
    #: A worker sends the notice until this time.
    claimed_until_ms = models.BigIntegerField(default=0)
    finished_ms = models.BigIntegerField(null=True)
    #: Code and values of the last attempt (`results.py`); empty before it.
    result = models.JSONField(default=dict, blank=True)
    #: The result of a notice that an older version sent: a sentence in English.
    error = models.CharField(max_length=ERROR_CHARS_MAX, blank=True)

    class Meta:
        indexes = (models.Index(fields=["state", "due_ms"], name="deliveries_due"),)

    def __str__(self) -> str:
        return f"{self.event} to {self.receiver_name}"

    @property
    def said(self) -> str:
        """The receiver's answer or the last error, in the reader's language."""
        return text_of(self.result) or self.error

    @property
    def result_code(self) -> str:
        return str(self.result.get("code", ""))


class Notified(models.Model):
    """An episode in a delivery."""

    delivery = models.ForeignKey(Delivery, models.CASCADE, related_name="notified")
    episode = models.ForeignKey(Episode, models.CASCADE, related_name="notified")
    receiver = models.ForeignKey(Receiver, models.SET_NULL, null=True, related_name="+")
    event = models.CharField(max_length=WORD_CHARS_MAX, choices=Event.choices)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["episode", "receiver", "event"], name="one_notice_per_event"
            ),
        )

    def __str__(self) -> str:
        return f"{self.event} of episode {self.episode_id}"

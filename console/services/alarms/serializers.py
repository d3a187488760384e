"""Bodies of requests and answers of the alarms' REST resources."""

from typing import Any

from rest_framework import serializers

from console.api.serializers import BodySerializer
from console.services.alarms.episodes import SHOWN
from console.services.alarms.models import (
    NAME_CHARS_MAX,
    NOTE_CHARS_MAX,
    OBJECT_CHARS_MAX,
    SEVERITIES,
    Comparison,
    DeliveryState,
    Event,
    Function,
    ReceiverKind,
    Source,
)
from console.services.alarms.receivers import SECRET_CHARS_MAX, URL_CHARS_MAX
from console.services.alarms.rules import FINDING_RULES, FOR_S_MAX, THRESHOLD_MAX
from console.services.alarms.series import WINDOW_S_MAX
from console.services.alarms.silences import SILENCE_MS_MAX
from console.services.findings.finding import KINDS
from console.services.history.metrics import METRICS, SCOPES

KIND_CHOICES = [*KINDS, "cluster"]
RECEIVERS_OF_RULE_MAX = 50
RECIPIENTS_CHARS_MAX = 4_000
LANGUAGES = ["en", "zh-hans"]


class AlarmObjectSerializer(serializers.Serializer[Any]):
    """An object of the cluster; the kind `cluster` has an empty name."""

    kind = serializers.ChoiceField(choices=KIND_CHOICES, source="episode.kind")
    name = serializers.CharField(source="episode.name", allow_blank=True)


class AlarmSerializer(serializers.Serializer[Any]):
    """An episode: the time during which one object meets the condition of one rule."""

    id = serializers.IntegerField(source="episode.pk")
    state = serializers.ChoiceField(
        choices=list(SHOWN),
        help_text="pending: the condition is met for less than the rule's `for_s`. silenced and "
        "acknowledged alarms fire, too.",
    )
    severity = serializers.ChoiceField(choices=SEVERITIES, source="episode.severity")
    object = AlarmObjectSerializer(source="*")
    rule = serializers.IntegerField(
        source="episode.rule_id", allow_null=True, help_text="null: the rule was deleted."
    )
    rule_name = serializers.CharField(source="episode.rule_name")
    finding = serializers.CharField(
        source="episode.detail", allow_blank=True, help_text="Rule of the finding; empty: a metric."
    )
    text = serializers.CharField(help_text="The problem, in the language of the request.")
    value = serializers.FloatField(source="episode.value", allow_null=True)
    begun_ms = serializers.IntegerField(
        source="episode.begun_ms", help_text="The condition is met since."
    )
    fired_ms = serializers.IntegerField(source="episode.fired_ms", allow_null=True)
    resolved_ms = serializers.IntegerField(source="episode.resolved_ms", allow_null=True)
    end_reason = serializers.CharField(source="episode.end_reason", allow_blank=True)
    notified_ms = serializers.IntegerField(
        source="episode.notified_ms",
        allow_null=True,
        help_text="Time of the decision to send the firing notice; null: silenced until now.",
    )
    silence = serializers.IntegerField(source="silence.pk", allow_null=True, default=None)
    acknowledged_ms = serializers.IntegerField(source="episode.acknowledged_ms", allow_null=True)
    acknowledged_by = serializers.CharField(source="episode.acknowledged_by", allow_blank=True)
    acknowledged_note = serializers.CharField(source="episode.acknowledged_note", allow_blank=True)


class AlarmPageSerializer(serializers.Serializer[Any]):
    """One page of alarms."""

    items = AlarmSerializer(many=True)
    total = serializers.IntegerField()
    next_cursor = serializers.CharField(allow_null=True)


class DeliverySerializer(serializers.Serializer[Any]):
    """A notice to one receiver."""

    id = serializers.IntegerField(source="pk")
    receiver = serializers.CharField(source="receiver_name")
    rule_name = serializers.CharField()
    event = serializers.ChoiceField(choices=Event.choices)
    state = serializers.ChoiceField(choices=DeliveryState.choices)
    attempts = serializers.IntegerField()
    created_ms = serializers.IntegerField()
    due_ms = serializers.IntegerField(help_text="Time of the next attempt while `waiting`.")
    finished_ms = serializers.IntegerField(allow_null=True)
    result = serializers.CharField(
        source="said",
        allow_blank=True,
        help_text="The receiver's answer, or the last error, in the language of the request.",
    )
    result_code = serializers.CharField(
        allow_blank=True,
        help_text="What happened, the same in every language; empty without a result.",
    )


class AlarmDetailSerializer(AlarmSerializer):
    """An episode with its notices."""

    deliveries = DeliverySerializer(many=True)


class AcknowledgeSerializer(BodySerializer):
    note = serializers.CharField(max_length=NOTE_CHARS_MAX, allow_blank=True, default="")


class RuleFields(BodySerializer):
    """A rule; fields of the other source are ignored."""

    name = serializers.CharField(max_length=NAME_CHARS_MAX)
    enabled = serializers.BooleanField(default=True)
    all_clusters = serializers.BooleanField(
        default=False, help_text="true: for all clusters of the console, not only for this one."
    )
    pattern = serializers.CharField(
        max_length=OBJECT_CHARS_MAX,
        allow_blank=True,
        default="",
        help_text="Names of objects, with * and ?; empty: all.",
    )
    source = serializers.ChoiceField(choices=Source.choices)  # type: ignore[assignment]
    scope = serializers.ChoiceField(choices=list(SCOPES), allow_blank=True, default="")
    metric = serializers.ChoiceField(
        choices=list(dict.fromkeys(each.name for each in METRICS)), allow_blank=True, default=""
    )
    function = serializers.ChoiceField(choices=Function.choices, default=Function.LAST)
    window_s = serializers.IntegerField(
        min_value=60, max_value=WINDOW_S_MAX, default=300, help_text="For average, growth and drop."
    )
    comparison = serializers.ChoiceField(choices=Comparison.choices, default=Comparison.ABOVE)
    threshold = serializers.FloatField(
        min_value=-THRESHOLD_MAX, max_value=THRESHOLD_MAX, default=0.0
    )
    clear_threshold = serializers.FloatField(
        min_value=-THRESHOLD_MAX,
        max_value=THRESHOLD_MAX,
        allow_null=True,
        default=None,
        help_text="Value at which an alarm resolves; null: at the threshold.",
    )
    finding_rule = serializers.ChoiceField(
        choices=list(FINDING_RULES), allow_blank=True, default="", help_text="Empty: all rules."
    )
    finding_severity = serializers.ChoiceField(
        choices=SEVERITIES, default="warning", help_text="Findings of this severity and worse."
    )
    for_s = serializers.IntegerField(
        min_value=0,
        max_value=FOR_S_MAX,
        default=60,
        help_text="The condition must be met for this time before the alarm fires.",
    )
    clear_for_s = serializers.IntegerField(
        min_value=0,
        max_value=FOR_S_MAX,
        default=60,
        help_text="The condition must not be met for this time before the alarm resolves.",
    )
    severity = serializers.ChoiceField(choices=SEVERITIES)
    note = serializers.CharField(
        max_length=NOTE_CHARS_MAX, allow_blank=True, default="", help_text="Sent with each notice."
    )
    receivers = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**31),
        max_length=RECEIVERS_OF_RULE_MAX,
        default=list,
        help_text="Ids of receivers, beside the receivers of all rules.",
    )


class AlarmRuleSerializer(serializers.Serializer[Any]):
    """A stored rule."""

    id = serializers.IntegerField(source="pk")
    name = serializers.CharField()
    enabled = serializers.BooleanField()
    all_clusters = serializers.SerializerMethodField()
    pattern = serializers.CharField(allow_blank=True)
    source = serializers.ChoiceField(choices=Source.choices)  # type: ignore[assignment]
    scope = serializers.CharField(allow_blank=True)
    metric = serializers.CharField(allow_blank=True)
    function = serializers.ChoiceField(choices=Function.choices)
    window_s = serializers.IntegerField()
    comparison = serializers.ChoiceField(choices=Comparison.choices)
    threshold = serializers.FloatField()
    clear_threshold = serializers.FloatField(allow_null=True)
    finding_rule = serializers.CharField(allow_blank=True)
    finding_severity = serializers.ChoiceField(choices=SEVERITIES)
    for_s = serializers.IntegerField()
    clear_for_s = serializers.IntegerField()
    severity = serializers.ChoiceField(choices=SEVERITIES)
    note = serializers.CharField(allow_blank=True)
    receivers = serializers.SerializerMethodField()
    left_out = serializers.IntegerField(help_text="Objects over the limit of alarms of a rule.")
    changed_ms = serializers.IntegerField()
    changed_by = serializers.CharField(allow_blank=True)

    def get_all_clusters(self, rule: Any) -> bool:
        return not rule.cluster

    def get_receivers(self, rule: Any) -> list[int]:
        return sorted(each.pk for each in rule.receivers.all())


class AlarmRuleListSerializer(serializers.Serializer[Any]):
    items = AlarmRuleSerializer(many=True)


class PreviewRowSerializer(serializers.Serializer[Any]):
    """An object that meets the condition now."""

    kind = serializers.CharField(source="key.kind")
    name = serializers.CharField(source="key.name", allow_blank=True)
    finding = serializers.CharField(source="key.detail", allow_blank=True)
    value = serializers.FloatField(allow_null=True)


class PreviewSerializer(serializers.Serializer[Any]):
    """What a rule sees now; `met` has at most 50 objects, `total` counts all."""

    met = PreviewRowSerializer(many=True)
    total = serializers.IntegerField()
    observed = serializers.IntegerField(help_text="Objects with a known value.")
    has_data = serializers.BooleanField(
        help_text="false: no samples, or no report of the findings, in the last minute."
    )


class ReceiverFields(BodySerializer):
    """A receiver. `url` and `secret` are never returned; absent in a PATCH: unchanged."""

    name = serializers.CharField(max_length=NAME_CHARS_MAX)
    kind = serializers.ChoiceField(choices=ReceiverKind.choices)
    enabled = serializers.BooleanField(default=True)
    all_rules = serializers.BooleanField(
        default=False, help_text="true: gets the notices of every rule."
    )
    language = serializers.ChoiceField(choices=LANGUAGES, default="en")
    recipients = serializers.CharField(
        max_length=RECIPIENTS_CHARS_MAX,
        allow_blank=True,
        default="",
        help_text="Mail addresses, separated by commas.",
    )
    url = serializers.CharField(max_length=URL_CHARS_MAX, allow_null=True, default=None)
    secret = serializers.CharField(
        max_length=SECRET_CHARS_MAX,
        allow_null=True,
        allow_blank=True,
        default=None,
        help_text="Key of the signature: of webhooks and DingTalk.",
    )


class ReceiverSerializer(serializers.Serializer[Any]):
    """A stored receiver, without secrets."""

    id = serializers.IntegerField(source="pk")
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=ReceiverKind.choices)
    enabled = serializers.BooleanField()
    all_rules = serializers.BooleanField()
    language = serializers.ChoiceField(choices=LANGUAGES)
    recipients = serializers.CharField(allow_blank=True)
    host = serializers.CharField(
        source="shown", allow_blank=True, help_text="Scheme and host of the URL."
    )
    has_secret = serializers.BooleanField()
    changed_ms = serializers.IntegerField()
    changed_by = serializers.CharField(allow_blank=True)


class ReceiverListSerializer(serializers.Serializer[Any]):
    items = ReceiverSerializer(many=True)


class TestOutcomeSerializer(serializers.Serializer[Any]):
    """The outcome of a test notice: `sent`, or `failed` with the reason."""

    result = serializers.ChoiceField(choices=["sent", "failed"])
    detail = serializers.CharField()


class SilenceFields(BodySerializer):
    """A silence from now on. Empty fields match everything."""

    all_clusters = serializers.BooleanField(default=False)
    rule = serializers.IntegerField(
        min_value=1, max_value=2**31, allow_null=True, default=None, help_text="Id of a rule."
    )
    kind = serializers.ChoiceField(choices=KIND_CHOICES, allow_blank=True, default="")
    pattern = serializers.CharField(
        max_length=OBJECT_CHARS_MAX, allow_blank=True, default="", help_text="With * and ?."
    )
    duration_s = serializers.IntegerField(min_value=1, max_value=SILENCE_MS_MAX // 1_000)
    reason = serializers.CharField(max_length=NOTE_CHARS_MAX)


class SilenceSerializer(serializers.Serializer[Any]):
    """A silence."""

    id = serializers.IntegerField(source="pk")
    all_clusters = serializers.SerializerMethodField()
    rule = serializers.IntegerField(source="rule_id", allow_null=True)
    kind = serializers.CharField(allow_blank=True)
    pattern = serializers.CharField(allow_blank=True)
    begin_ms = serializers.IntegerField()
    until_ms = serializers.IntegerField()
    reason = serializers.CharField()
    created_by = serializers.CharField()

    def get_all_clusters(self, silence: Any) -> bool:
        return not silence.cluster


class SilenceListSerializer(serializers.Serializer[Any]):
    items = SilenceSerializer(many=True)

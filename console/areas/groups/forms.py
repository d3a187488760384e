"""Forms of groups."""

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from console.frame.forms import TypedNameForm
from console.gateway.groups.changes import GroupSettings
from console.resources.forms import ResourceForm
from core_broker.errors import ClientError
from core_broker.message.topics import GROUP_BYTES_MAX, validate_group

RETRIES_MAX = 10_000
RETRY_QUEUES_MAX = 64


class GroupSettingsForm(ResourceForm):
    """Settings of a group."""

    layout = (
        ("retry_max_times", "retry_queue_nums"),
        ("consume_enable",),
        ("consume_broadcast_enable",),
        ("notify_consumer_ids_changed_enable",),
    )

    consume_enable = forms.BooleanField(
        label=_("Consumption enabled"),
        required=False,
        initial=True,
        help_text=_("When off, brokers refuse every pull of the group."),
    )
    consume_broadcast_enable = forms.BooleanField(
        label=_("Broadcast consumption enabled"), required=False, initial=True
    )
    notify_consumer_ids_changed_enable = forms.BooleanField(
        label=_("Notify consumers of membership changes"),
        required=False,
        initial=True,
        help_text=_("When off, consumers notice a change within 20 seconds."),
    )
    retry_max_times = forms.IntegerField(
        label=_("Retries before the dead-letter queue"),
        min_value=0,
        max_value=RETRIES_MAX,
        initial=16,
        help_text=_("The delay grows with each retry, up to two hours."),
    )
    retry_queue_nums = forms.IntegerField(
        label=_("Queues of the retry topic"), min_value=1, max_value=RETRY_QUEUES_MAX, initial=1
    )

    def settings(self) -> GroupSettings:
        given = self.cleaned_data
        return GroupSettings(
            consume_enable=given["consume_enable"],
            consume_broadcast_enable=given["consume_broadcast_enable"],
            notify_consumer_ids_changed_enable=given["notify_consumer_ids_changed_enable"],
            retry_max_times=given["retry_max_times"],
            retry_queue_nums=given["retry_queue_nums"],
        )


class GroupCreateForm(GroupSettingsForm):
    name = forms.CharField(
        label=_("Name"),
        max_length=GROUP_BYTES_MAX,
        help_text=_("Letters, digits, “-”, “_”, “%” and “|”."),
    )

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        try:
            validate_group(name)
        except ClientError as wrong:
            raise ValidationError(str(wrong)) from wrong
        return name


class GroupDeleteForm(TypedNameForm):
    dead_letters = forms.BooleanField(
        label=_("Delete dead letters too"),
        required=False,
        help_text=_("Otherwise the dead letters stay and can be resent to other groups."),
    )

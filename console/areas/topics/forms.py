"""Forms of topics: settings, and the brokers to change."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from console.gateway.topics.changes import QUEUES_MAX, TopicSettings
from console.gateway.topics.permission import perm_words
from console.resources.forms import ResourceForm
from core_broker.errors import ClientError
from core_broker.message.topics import validate_topic
from core_broker.remoting.bodies import TopicConfig

PERMS = (6, 4, 2)


def perm_choices() -> list[tuple[int, str]]:
    """The permissions 6, 4 and 2 with their labels."""
    known = [(perm, perm_words(perm)) for perm in PERMS]
    return [(perm, f"{words.words} · {perm}") for perm, words in known if words]


class TopicSettingsForm(ResourceForm):
    """Settings of a topic."""

    layout = (("write_queues", "read_queues"), ("perm",), ("order",))

    write_queues = forms.IntegerField(
        label=_("Write queues per broker"),
        min_value=1,
        max_value=QUEUES_MAX,
        initial=8,
        help_text=_("Producers spread messages over these queues."),
    )
    read_queues = forms.IntegerField(
        label=_("Read queues per broker"),
        min_value=1,
        max_value=QUEUES_MAX,
        initial=8,
        help_text=_(
            "Consumers read from these queues. To remove queues without losing messages, lower the "
            "write queues first, wait until the removed queues are consumed, then lower the read "
            "queues."
        ),
    )
    perm = forms.TypedChoiceField(
        label=_("Permission"),
        coerce=int,
        choices=perm_choices,
        initial=6,
        help_text=_("2 is write only, 4 is read only, 6 is read and write."),
    )
    order = forms.BooleanField(
        label=_("Ordered topic"),
        required=False,
        help_text=_("Keep the number of queues while a broker is down, to preserve message order."),
    )

    @classmethod
    def initial_of(cls, config: TopicConfig) -> dict[str, Any]:
        return {
            "write_queues": config.write_queue_nums,
            "read_queues": config.read_queue_nums,
            "perm": config.perm,
            "order": config.order,
        }

    def offer_present(self, config: TopicConfig) -> None:
        """Add the present permission to the choices when PERMS lacks the value."""
        perm = config.perm
        words = perm_words(perm)
        if perm not in PERMS and words is not None:
            field = self.fields["perm"]
            assert isinstance(field, forms.TypedChoiceField)
            field.choices = [(perm, f"{words.words} · {perm}"), *perm_choices()]

    def settings(self) -> TopicSettings:
        given = self.cleaned_data
        return TopicSettings(
            read_queues=given["read_queues"],
            write_queues=given["write_queues"],
            perm=given["perm"],
            order=given["order"],
        )


class TopicCreateForm(TopicSettingsForm):
    name = forms.CharField(
        label=_("Name"),
        max_length=127,
        help_text=_("Letters, digits, “-”, “_”, “%” and “|”; up to 127."),
    )

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        try:
            validate_topic(name)
        except ClientError as wrong:
            raise ValidationError(str(wrong)) from wrong
        return name

"""May an account publish, consume or administer, and why: the page and the form of page and API.

The form's values are in the address of the page.
"""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.frame.access import Need, needs
from console.frame.forms import TablerForm
from console.frame.pages import ClusterPage, Crumb
from console.gateway.acl_users.decisions import BrokerDecision, access_decisions, known_accounts
from console.gateway.acl_users.entries import NAME_CHARS_MAX
from core_broker.auth.contracts import Check
from core_broker.auth.explanation import EXPLAINED, Generation, Outcome, Question
from core_broker.remoting.codes import RequestCode

#: Maximum length of an access key of ACL 1.0, characters.
ACCOUNT_CHARS_MAX = 1_024

#: The request of each action.
ACTIONS = {
    "publish": RequestCode.SEND_MESSAGE_V2,
    "consume": RequestCode.PULL_MESSAGE,
    "create-topic": RequestCode.UPDATE_AND_CREATE_TOPIC,
    "delete-topic": RequestCode.DELETE_TOPIC_IN_BROKER,
    "delete-group": RequestCode.DELETE_SUBSCRIPTIONGROUP,
    "change-settings": RequestCode.UPDATE_BROKER_CONFIG,
}
_CHOICES = [
    ("publish", gettext_lazy("Publish")),
    ("consume", gettext_lazy("Consume")),
    (
        gettext_lazy("Administration"),
        [
            ("create-topic", gettext_lazy("Create or change a topic")),
            ("delete-topic", gettext_lazy("Delete a topic")),
            ("delete-group", gettext_lazy("Delete a consumer group")),
            ("change-settings", gettext_lazy("Change broker settings")),
        ],
    ),
]
_CHECKS = {
    Check.WHITE_LIST: gettext_lazy("Global white list of addresses"),
    Check.ACCOUNT: gettext_lazy("Account exists and is enabled"),
    Check.ACCOUNT_WHITE_LIST: gettext_lazy("White address of the account"),
    Check.SIGNATURE: gettext_lazy("Signature (counts as right)"),
    Check.ADMINISTRATOR: gettext_lazy("Super user"),
    Check.PERMISSIONS: gettext_lazy("Entries by priority"),
}
_CHECKS_OF_ACL1 = {
    Check.ACCOUNT: gettext_lazy("Account exists"),
    Check.ADMINISTRATOR: gettext_lazy("Administrator"),
    Check.PERMISSIONS: gettext_lazy("Permission of the account"),
}
#: Outcomes of checks that leave the decision to the next check.
_PASSED = {
    Check.WHITE_LIST: gettext_lazy("no match"),
    Check.ACCOUNT: gettext_lazy("yes"),
    Check.ACCOUNT_WHITE_LIST: gettext_lazy("no match"),
    Check.SIGNATURE: gettext_lazy("yes"),
    Check.ADMINISTRATOR: gettext_lazy("no"),
}
_OUTCOMES = {
    Outcome.ALLOWED: gettext_lazy("allowed"),
    Outcome.REFUSED: gettext_lazy("denied"),
    Outcome.NOT_REACHED: gettext_lazy("not reached"),
}


class AccessCheckForm(TablerForm):
    """A question about an account. Empty account: a client without signature."""

    account = forms.CharField(
        label=gettext_lazy("Account"),
        required=False,
        strip=False,
        max_length=ACCOUNT_CHARS_MAX,
        help_text=gettext_lazy(
            "User name (ACL 2.0) or access key (ACL 1.0). Empty: the client does not sign."
        ),
    )
    action = forms.ChoiceField(label=gettext_lazy("Action"), choices=_CHOICES, initial="publish")
    topic = forms.CharField(label=gettext_lazy("Topic"), required=False, max_length=NAME_CHARS_MAX)
    group = forms.CharField(
        label=gettext_lazy("Consumer group"), required=False, max_length=NAME_CHARS_MAX
    )
    address = forms.GenericIPAddressField(
        label=gettext_lazy("Source address"),
        help_text=gettext_lazy("IP address of the client, as the broker sees the address."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("account", "topic", "group", "address"):
            self.fields[name].widget.attrs |= {"autocomplete": "off", "spellcheck": "false"}
        self.fields["account"].widget.attrs["list"] = "accounts"

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        code = ACTIONS.get(cleaned.get("action", ""))
        if code is not None:
            required = EXPLAINED[code]
            for name, is_required in (("topic", required.topic), ("group", required.group)):
                if is_required and name not in self.errors and not cleaned.get(name):
                    self.add_error(name, gettext_lazy("Required for this action."))
        return cleaned

    @property
    def question(self) -> Question:
        """The question of a valid form; names that the request does not have are left out."""
        given = self.cleaned_data
        code = ACTIONS[given["action"]]
        fields = EXPLAINED[code]
        return Question(
            given["account"],
            given["address"],
            given["topic"] if fields.topic else "",
            given["group"] if fields.group else "",
            code,
        )


@dataclass(frozen=True, slots=True)
class ShownStep:
    """A check with translated texts."""

    title: str
    outcome: str
    outcome_title: str
    resource: str
    rules: tuple[str, ...]


@needs(Need.ADMIN)
class AccessCheckPage(ClusterPage):
    """The form, and for a complete form the decision of each broker."""

    template = "acl_users/check.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        accounts = self.cluster.ask(known_accounts).value
        if "action" not in request.GET:
            return self._show(accounts, AccessCheckForm(initial=_initial(request)))
        form = AccessCheckForm(request.GET)
        if not form.is_valid():
            return self._show(accounts, form, status=400)
        answer = self.cluster.ask(access_decisions, form.question)
        decisions = [(each, _shown_paths(each)) for each in answer.value]
        return self._show(accounts, form, asked=form.question, answer=answer, decisions=decisions)

    def _show(self, accounts: tuple[str, ...], form: AccessCheckForm, **more: Any) -> HttpResponse:
        start = reverse("acl_users:list", kwargs={"cluster": self.cluster.name})
        title = _("Access check")
        crumbs = [Crumb(_("Access control"), start), Crumb(title)]
        return self.show(title=title, crumbs=crumbs, accounts=accounts, form=form, **more)


def _initial(request: HttpRequest) -> dict[str, str]:
    """Values of an incomplete address, for links from other pages; by default the own address."""
    given: QueryDict = request.GET
    known = {
        name: given[name] for name in ("account", "topic", "group", "address") if name in given
    }
    return {"address": request.META.get("REMOTE_ADDR", ""), **known}


def _shown_paths(decision: BrokerDecision) -> list[tuple[str, list[ShownStep]]]:
    return [
        (
            path.generation,
            [
                ShownStep(
                    title=str(_title(path.generation, step.check)),
                    outcome=step.outcome.value,
                    outcome_title=str(_OUTCOMES.get(step.outcome) or _PASSED[step.check]),
                    resource=step.resource,
                    rules=step.rules,
                )
                for step in path.steps
            ],
        )
        for path in decision.paths
    ]


def _title(generation: Generation, check: Check) -> Any:
    titles = _CHECKS | _CHECKS_OF_ACL1 if generation is Generation.ACL1 else _CHECKS
    return titles[check]

"""Pages of broker settings: compare brokers, preview and make a change, undo a change."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.audit.recording import audited
from console.frame.access import Need, needs
from console.frame.forms import BrokersForm
from console.frame.outcomes import tell_outcomes
from console.frame.pages import ClusterPage, Crumb
from console.gateway import GatewayError, NotFound, PreconditionFailed
from console.gateway.brokers.settings import (
    VALUE_CHARS_MAX,
    ClusterSettings,
    Setting,
    broker_settings,
    change_settings,
    check_changeable,
    differences,
)
from console.gateway.changes import BrokerOutcome, FieldChange, changed_values
from console.resources import history
from console.resources.models import Kind
from console.resources.undo import UndoPage
from console.services.clusters.setting_docs import meanings

FILTERS = ("differing", "changed", "changeable")


class SettingForm(BrokersForm):
    value = forms.CharField(
        label=gettext_lazy("New value"), required=False, max_length=VALUE_CHARS_MAX
    )


def matching(state: ClusterSettings, show: str, search: str) -> list[Setting]:
    """The settings of the filter `show` whose key, value or meaning contains every search word."""
    words = search.lower().split()
    docs = meanings(apache=bool(state.apache))
    return [
        setting
        for setting in state.settings
        if _in_filter(setting, show)
        and all(
            word
            in f"{setting.name} {' '.join(setting.values.values())} "
            f"{docs.get(setting.name, '')}".lower()
            for word in words
        )
    ]


def _in_filter(setting: Setting, show: str) -> bool:
    if show == "differing":
        return setting.differs and not setting.own
    if show == "changed":
        return setting.default is not None and not setting.is_default and not setting.own
    return setting.changeable if show == "changeable" else True


class SettingsPage(ClusterPage):
    """Every setting with the value of each broker; differences are marked."""

    template = "clusters/settings.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        answer = self.cluster.ask(broker_settings)
        show, search = request.GET.get("show", ""), request.GET.get("q", "").strip()[:255]
        settings = matching(answer.value, show, search)
        docs = meanings(apache=bool(answer.value.apache))
        return self.show(
            title=_("Broker settings"),
            answer=answer,
            state=answer.value,
            lines=[(setting, docs.get(setting.name, "")) for setting in settings],
            show=show if show in FILTERS else "",
            counts=[
                (name, label_of(name), len(matching(answer.value, name, ""))) for name in FILTERS
            ],
            search=search,
        )


def label_of(show: str) -> str:
    labels = {
        "differing": _("Differ between brokers"),
        "changed": _("Not default"),
        "changeable": _("Changeable"),
    }
    return labels[show]


@needs(Need.ADMIN)
class SettingPage(ClusterPage):
    """One setting: values of the brokers, form with preview, earlier changes with undo."""

    template = "clusters/setting.html"
    actions = {"post": "broker.configure"}

    def get(self, request: HttpRequest, cluster: str, key: str) -> HttpResponse:
        state, setting = self.current(key)
        return self.form(state, setting, self.setting_form(state, setting))

    def post(self, request: HttpRequest, cluster: str, key: str) -> HttpResponse:
        state, setting = self.current(key)
        form = self.setting_form(state, setting, request.POST)
        if not form.is_valid() or "change" in request.POST:
            return self.form(state, setting, form, status=200 if form.is_valid() else 422)
        new_values, brokers = {key: form.cleaned_data["value"]}, form.cleaned_data["brokers"]
        lines = differences(state, new_values, brokers)
        if not lines or "save" not in request.POST:
            return self.form(state, setting, form, changes=lines, previewed=True)
        audit_fields: dict[str, Any] = {
            "cluster": cluster,
            "target": key,
            "before": {key: dict(setting.values)},
        }
        try:
            with audited(request, "broker.configure", **audit_fields) as entry:
                etag = request.POST.get("etag")
                outcomes = self.cluster.do(change_settings, new_values, brokers, etag)
                entry.after = changed_values(audit_fields["before"], lines)
                entry.outcomes(outcomes)
        except PreconditionFailed as conflict:
            messages.error(request, f"{conflict.detail} {conflict.hint}")
            return redirect("clusters:setting", cluster, key)
        except GatewayError as refused:
            form.add_error("value", str(refused.detail))
            return self.form(state, setting, form, status=422)
        history.keep(request.user, cluster, Kind.BROKER, key, lines, outcomes)
        tell_outcomes(request, outcomes, _("“%s” is changed.") % key)
        return redirect("clusters:setting", cluster, key)

    def current(self, key: str) -> tuple[ClusterSettings, Setting]:
        state = self.cluster.ask(broker_settings).value
        setting = next((setting for setting in state.settings if setting.name == key), None)
        if setting is None:
            raise NotFound(_("No broker has a setting “%s”.") % key)
        check_changeable({key: ""})
        return state, setting

    def setting_form(
        self, state: ClusterSettings, setting: Setting, data: Any = None
    ) -> SettingForm:
        first = next(iter(setting.values.values()))
        form = SettingForm(data, initial={"value": first})
        form.offer_brokers(state.brokers)
        return form

    def form(
        self,
        state: ClusterSettings,
        setting: Setting,
        form: SettingForm,
        *,
        status: int = 200,
        **context: Any,
    ) -> HttpResponse:
        back = reverse("clusters:settings", args=[self.cluster.name])
        return self.show(
            title=setting.name,
            crumbs=[Crumb(_("Broker settings"), back), Crumb(setting.name)],
            status=status,
            setting=setting,
            meaning=meanings(apache=bool(state.apache)).get(setting.name, ""),
            form=form,
            etag=state.etag,
            back=back,
            past=history.recent(self.cluster.name, Kind.BROKER, setting.name),
            **context,
        )


@needs(Need.ADMIN)
class SettingUndoPage(UndoPage):
    kind = Kind.BROKER
    actions = {"post": "broker.undo"}

    def present(self, name: str) -> dict[tuple[str, str], Any]:
        state = self.cluster.ask(broker_settings).value
        setting = next((setting for setting in state.settings if setting.name == name), None)
        values = setting.values if setting is not None else {}
        return {(broker, name): value for broker, value in values.items()}

    def restore(self, name: str, lines: Sequence[FieldChange]) -> Sequence[BrokerOutcome]:
        outcomes: list[BrokerOutcome] = []
        ordered = sorted(lines, key=lambda line: str(line.before))
        for before, same_value in groupby(ordered, key=lambda line: line.before):
            brokers = [line.broker for line in same_value]
            outcomes += self.cluster.do(change_settings, {name: before or ""}, brokers)
        return outcomes

    def back(self, name: str) -> HttpResponse:
        return redirect("clusters:setting", self.cluster.name, name)

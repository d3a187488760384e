"""Pages of brokers' settings: compare them, change one with the difference shown before, undo."""

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
from console.gateway import Conflict, GatewayError, NotFound
from console.gateway.brokers.settings import (
    VALUE_CHARS_MAX,
    ClusterSettings,
    Setting,
    broker_settings,
    change_settings,
    check_changeable,
    differences,
)
from console.gateway.changes import BrokerOutcome, FieldChange
from console.resources import history
from console.resources.models import Kind
from console.resources.undo import UndoPage
from console.services.clusters.setting_docs import meanings

SHOW = ("differing", "changed", "changeable")


class SettingForm(BrokersForm):
    value = forms.CharField(
        label=gettext_lazy("New value"), required=False, max_length=VALUE_CHARS_MAX
    )


def passing(state: ClusterSettings, show: str, search: str) -> list[Setting]:
    """The settings of a filter whose key, value or meaning holds every searched word."""
    words = search.lower().split()
    docs = meanings()
    return [
        setting
        for setting in state.settings
        if _passes(setting, show)
        and all(
            word
            in f"{setting.name} {' '.join(setting.values.values())} "
            f"{docs.get(setting.name, '')}".lower()
            for word in words
        )
    ]


def _passes(setting: Setting, show: str) -> bool:
    if show == "differing":
        return setting.differs and not setting.own
    if show == "changed":
        return setting.default is not None and not setting.is_default and not setting.own
    return setting.changeable if show == "changeable" else True


class SettingsPage(ClusterPage):
    """Every key with its value on each broker, and which of them differ."""

    template = "clusters/settings.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        answer = self.cluster.ask(broker_settings)
        show, search = request.GET.get("show", ""), request.GET.get("q", "").strip()[:255]
        found = passing(answer.value, show, search)
        docs = meanings()
        return self.show(
            title=_("Broker settings"),
            answer=answer,
            state=answer.value,
            lines=[(setting, docs.get(setting.name, "")) for setting in found],
            show=show if show in SHOW else "",
            counts=[(name, label_of(name), len(passing(answer.value, name, ""))) for name in SHOW],
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
    """One key: its values, a form, what it would change, and what was changed before."""

    template = "clusters/setting.html"
    actions = {"post": "broker.configure"}

    def get(self, request: HttpRequest, cluster: str, key: str) -> HttpResponse:
        state, setting = self.found(key)
        return self.form(state, setting, self.filled(state, setting))

    def post(self, request: HttpRequest, cluster: str, key: str) -> HttpResponse:
        state, setting = self.found(key)
        form = self.filled(state, setting, request.POST)
        if not form.is_valid() or "change" in request.POST:
            return self.form(state, setting, form, status=200 if form.is_valid() else 422)
        wanted, brokers = {key: form.cleaned_data["value"]}, form.cleaned_data["brokers"]
        lines = differences(state, wanted, brokers)
        if not lines or "save" not in request.POST:
            return self.form(state, setting, form, changes=lines, asked=True)
        act: dict[str, Any] = {"cluster": cluster, "target": key, "before": dict(setting.values)}
        try:
            with audited(request, "broker.configure", **act) as entry:
                etag = request.POST.get("etag")
                outcomes = self.cluster.do(change_settings, wanted, brokers, etag)
                entry.after = wanted
                entry.outcomes(outcomes)
        except Conflict as changed:
            messages.error(request, f"{changed.detail} {changed.hint}")
            return redirect("clusters:setting", cluster, key)
        except GatewayError as refused:
            form.add_error("value", str(refused.detail))
            return self.form(state, setting, form, status=422)
        history.keep(request.user, cluster, Kind.BROKER, key, lines, outcomes)
        tell_outcomes(request, outcomes, _("“%s” is changed.") % key)
        return redirect("clusters:setting", cluster, key)

    def found(self, key: str) -> tuple[ClusterSettings, Setting]:
        state = self.cluster.ask(broker_settings).value
        setting = next((one for one in state.settings if one.name == key), None)
        if setting is None:
            raise NotFound(_("No broker has a setting “%s”.") % key)
        check_changeable({key: ""})
        return state, setting

    def filled(self, state: ClusterSettings, setting: Setting, data: Any = None) -> SettingForm:
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
        **more: Any,
    ) -> HttpResponse:
        back = reverse("clusters:settings", args=[self.cluster.name])
        return self.show(
            title=setting.name,
            crumbs=[Crumb(_("Broker settings"), back), Crumb(setting.name)],
            status=status,
            setting=setting,
            meaning=meanings().get(setting.name, ""),
            form=form,
            etag=state.etag,
            back=back,
            past=history.recent(self.cluster.name, Kind.BROKER, setting.name),
            **more,
        )


@needs(Need.ADMIN)
class SettingUndoPage(UndoPage):
    kind = Kind.BROKER
    actions = {"post": "broker.undo"}

    def present(self, name: str) -> dict[tuple[str, str], Any]:
        state = self.cluster.ask(broker_settings).value
        setting = next((one for one in state.settings if one.name == name), None)
        values = setting.values if setting is not None else {}
        return {(broker, name): value for broker, value in values.items()}

    def restore(self, name: str, lines: Sequence[FieldChange]) -> Sequence[BrokerOutcome]:
        outcomes: list[BrokerOutcome] = []
        ordered = sorted(lines, key=lambda line: str(line.before))
        for before, of_value in groupby(ordered, key=lambda line: line.before):
            brokers = [line.broker for line in of_value]
            outcomes += self.cluster.do(change_settings, {name: before or ""}, brokers)
        return outcomes

    def back(self, name: str) -> HttpResponse:
        return redirect("clusters:setting", self.cluster.name, name)

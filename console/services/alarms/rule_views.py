"""Pages of the rules of alarms."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from console.audit.recording import audited
from console.frame.access import Need, needs
from console.frame.confirmations import Confirmation
from console.frame.formats import duration
from console.frame.pages import ClusterPage, Crumb
from console.frame.versions import (
    CHANGED_MEANWHILE,
    check_posted,
    posted_version,
    shown_version,
)
from console.gateway import GatewayError, PreconditionFailed
from console.services.alarms import rules
from console.services.alarms.forms import RuleForm, initial_of
from console.services.alarms.models import AlarmRule, Episode, EpisodeState
from console.services.alarms.scope import check_scope
from console.services.alarms.titles import stored_name, title_of
from console.services.alarms.views import tab_crumbs


class RulesPage(ClusterPage):
    """Rules that apply to the cluster."""

    template = "alarms/rules.html"
    part = "alarms/rule_rows.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        found = rules.rules_of(cluster)
        firing = Episode.objects.filter(cluster=cluster, state=EpisodeState.FIRING)
        numbers = list(firing.values_list("rule", flat=True))
        rows = [
            (
                each,
                title_of(each),
                rules.summary_of(each),
                numbers.count(each.pk),
                for_of(each),
            )
            for each in found
        ]
        title = _("Rules")
        return self.show(title=title, crumbs=tab_crumbs(cluster, title), tab="rules", rows=rows)


@needs(Need.WRITE)
class RuleCreatePage(ClusterPage):
    template = "alarms/rule.html"
    actions = {"post": "alarm-rule.create"}

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        return self.form(RuleForm(initial=initial_of(AlarmRule(source="metric", cluster=cluster))))

    def post(self, request: HttpRequest, cluster: str) -> HttpResponseBase:
        form = RuleForm(request.POST)
        if not form.is_valid():
            return self.form(form, status=422)
        try:
            if "preview" in request.POST:
                return self.form(form, preview=rules.preview(self.cluster, form.values(cluster)))
            return self.saved(request, form)
        except ValidationError as wrong:
            add_errors(form, wrong)
        except GatewayError as refusal:
            form.add_error(None, str(refusal.detail))
        return self.form(form, status=422)

    def saved(self, request: HttpRequest, form: RuleForm) -> HttpResponseBase:
        cluster = self.cluster.name
        name, values = form.cleaned_data["name"], form.values(cluster)
        check_scope(request, Need.WRITE, values["cluster"])
        with audited(request, "alarm-rule.create", cluster=cluster, target=name) as entry:
            rule = rules.save(None, values, form.chosen_receivers(), request.user)
            entry.after = rules.state_of(rule)
        messages.success(request, _("The rule is saved."))
        return redirect("alarms:rules", cluster=cluster)

    def form(self, form: RuleForm, status: int = 200, **more: Any) -> HttpResponse:
        title = _("Create a rule")
        return self.show(
            title=title, crumbs=crumbs(self.cluster.name, title), form=form, status=status, **more
        )


@needs(Need.WRITE)
class RulePage(ClusterPage):
    """One rule: edit, preview, delete."""

    template = "alarms/rule.html"
    actions = {"post": "alarm-rule.update"}

    def get(self, request: HttpRequest, cluster: str, number: int) -> HttpResponse:
        rule = rules.rule_numbered(cluster, number)
        return self.form(rule, RuleForm(initial=initial_of(rule)))

    def post(self, request: HttpRequest, cluster: str, number: int) -> HttpResponseBase:
        rule = rules.rule_numbered(cluster, number)
        if "remove" in request.POST:
            form = RuleForm(initial=initial_of(rule))
            return self.form(rule, form, confirmation=of_rule(rule))
        if "preview" not in request.POST:
            check_scope(request, Need.WRITE, rule.cluster)
        if "removed" in request.POST:
            return self.removed(request, rule)
        if "switch" in request.POST:
            return self.switched(request, rule)
        form = RuleForm(request.POST)
        if not form.is_valid():
            return self.form(rule, form, status=422)
        values = form.values(rule.cluster or cluster)
        values["name"] = stored_name(rule, values["name"])
        try:
            if "preview" in request.POST:
                return self.form(rule, form, preview=rules.preview(self.cluster, values))
            check_posted(request, rules.version(rule))
            return self.saved(request, rule, form, values)
        except PreconditionFailed:
            rule = rules.rule_numbered(cluster, number)
            form.add_error(None, CHANGED_MEANWHILE)
            return self.form(rule, form, status=409, version=rules.version(rule))
        except ValidationError as wrong:
            add_errors(form, wrong)
        return self.form(rule, form, status=422)

    def saved(
        self, request: HttpRequest, rule: AlarmRule, form: RuleForm, values: dict[str, Any]
    ) -> HttpResponseBase:
        check_scope(request, Need.WRITE, values["cluster"])
        with self.audited(request, rule, "alarm-rule.update") as entry:
            receivers, expected = form.chosen_receivers(), posted_version(request)
            changed = rules.save(rule, values, receivers, request.user, expected)
            entry.after = rules.state_of(changed)
        messages.success(request, _("The rule is saved."))
        return redirect("alarms:rules", cluster=self.cluster.name)

    def switched(self, request: HttpRequest, rule: AlarmRule) -> HttpResponseBase:
        on = request.POST["switch"] == "on"
        with self.audited(request, rule, "alarm-rule.update") as entry:
            rules.switch(rule, request.user, on=on)
            entry.after = {"enabled": on}
        messages.success(request, _("The rule is on.") if on else _("The rule is off."))
        return redirect("alarms:rules", cluster=self.cluster.name)

    def removed(self, request: HttpRequest, rule: AlarmRule) -> HttpResponseBase:
        with self.audited(request, rule, "alarm-rule.delete"):
            rules.delete(rule)
        messages.success(request, _("The rule is deleted."))
        return redirect("alarms:rules", cluster=self.cluster.name)

    def audited(self, request: HttpRequest, rule: AlarmRule, action: str) -> Any:
        about: dict[str, Any] = {"target": rule.name, "before": rules.state_of(rule)}
        return audited(request, action, cluster=self.cluster.name, **about)

    def form(self, rule: AlarmRule, form: RuleForm, status: int = 200, **more: Any) -> HttpResponse:
        title = title_of(rule)
        crumb = crumbs(self.cluster.name, title)
        more.setdefault("version", shown_version(self.request, rules.version(rule)))
        return self.show(title=title, crumbs=crumb, form=form, rule=rule, status=status, **more)


def of_rule(rule: AlarmRule) -> Confirmation:
    """Ask before a rule is deleted."""
    return Confirmation(
        question=_("Delete the rule “%(name)s”?") % {"name": title_of(rule)},
        button=_("Delete rule"),
        name="removed",
        consequences=(_("Its firing alarms resolve, and their receivers are notified."),),
    )


def for_of(rule: AlarmRule) -> str:
    """The time for which the condition of a rule is met before an alarm fires."""
    return duration(rule.for_s * 1000) if rule.for_s else _("at once")


def crumbs(cluster: str, title: str) -> list[Crumb]:
    return [
        Crumb(_("Alarms"), reverse("alarms:list", args=[cluster])),
        Crumb(_("Rules"), reverse("alarms:rules", args=[cluster])),
        Crumb(title),
    ]


def add_errors(form: Any, wrong: ValidationError) -> None:
    """Show the errors at the fields of a form; errors of other fields above the form."""
    for name, reasons in wrong.message_dict.items():
        field = "metric" if name == "scope" else name
        form.add_error(field if field in form.fields else None, reasons)

"""Pages of the rules of masks."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from console.audit.recording import audited
from console.frame.access import Need, check_may, needs
from console.frame.forms import TypedNameForm
from console.frame.masking import seen_by
from console.frame.pages import ClusterPage, Crumb
from console.frame.permissions import Target
from console.frame.versions import (
    CHANGED_MEANWHILE,
    check_posted,
    posted_version,
    shown_version,
)
from console.gateway import GatewayError, PreconditionFailed
from console.services.masking import rules
from console.services.masking.forms import MaskingForm, initial_of
from console.services.masking.models import MaskingRule
from console.services.masking.preview import preview

RESOURCE = "masking"


class RuleListPage(ClusterPage):
    """The rules of a cluster, and what the reader sees unmasked."""

    template = "masking/list.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        layers = seen_by(request.user, cluster)
        shown = [sorted(set(layer)) for layer in layers]
        unmasked = min(shown, key=lambda layer: "*" in layer, default=[])
        return self.show(title=_("Masked fields"), rows=rules.rules_of(cluster), unmasked=unmasked)


class RulePage(ClusterPage):
    """Base of the pages with the form of a rule."""

    template = "masking/rule.html"
    writes_cluster = False

    def form(
        self, form: MaskingForm, rule: MaskingRule | None, status: int = 200, **more: Any
    ) -> HttpResponse:
        title = rule.name if rule else _("Create a rule")
        crumbs = [
            Crumb(_("Masked fields"), reverse("masking:list", args=[self.cluster.name])),
            Crumb(title),
        ]
        if rule:
            more.setdefault("version", shown_version(self.request, rules.version(rule)))
        return self.show(title=title, crumbs=crumbs, form=form, rule=rule, status=status, **more)

    def submitted(self, request: HttpRequest, rule: MaskingRule | None) -> HttpResponseBase:
        """Preview or save."""
        form = MaskingForm(request.POST)
        if not form.is_valid():
            return self.form(form, rule, status=422)
        try:
            if "preview" in request.POST:
                return self.previewed(request, form, rule)
            if rule:
                check_posted(request, rules.version(rule))
            return self.saved(request, form, rule)
        except PreconditionFailed:
            assert rule is not None  # a new rule has no version
            rule = rules.rule_numbered(self.cluster.name, rule.pk)
            form.add_error(None, CHANGED_MEANWHILE)
            return self.form(form, rule, status=409, version=rules.version(rule))
        except ValidationError as wrong:
            for name, reasons in wrong.message_dict.items():
                form.add_error(name if name in form.fields else None, reasons)
        except GatewayError as refusal:
            form.add_error(None, f"{refusal.detail} {refusal.hint}")
        return self.form(form, rule, status=422)

    def previewed(
        self, request: HttpRequest, form: MaskingForm, rule: MaskingRule | None
    ) -> HttpResponse:
        given, plain = form.cleaned_data, rules.checked(form.draft())
        topic = given["sample_topic"].strip()
        if topic:
            check_may(request, Need.READ, Target("messages", self.cluster.name, topic))
        shown = preview(self.cluster, plain, given["sample"], topic)
        return self.form(form, rule, preview=shown, preview_topic=topic)

    def saved(
        self, request: HttpRequest, form: MaskingForm, rule: MaskingRule | None
    ) -> HttpResponseBase:
        cluster, draft = self.cluster.name, form.draft()
        check_scope(request, draft.all_clusters, rule)
        action = "masking-rule.update" if rule else "masking-rule.create"
        before = rule.state if rule else None
        with audited(request, action, cluster=cluster, target=draft.name, before=before) as entry:
            expected = posted_version(request)
            entry.after = rules.save(request.user, rule, draft, cluster, expected).state
        messages.success(request, _("The rule is saved."))
        return redirect("masking:list", cluster=cluster)


@needs(Need.ADMIN)
class RuleCreatePage(RulePage):
    actions = {"post": "masking-rule.create"}

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        return self.form(MaskingForm(), None)

    def post(self, request: HttpRequest, cluster: str) -> HttpResponseBase:
        return self.submitted(request, None)


@needs(Need.ADMIN)
class RuleOnePage(RulePage):
    """One rule: edit, preview, delete after the name is typed."""

    actions = {"post": "masking-rule.update"}

    def get(self, request: HttpRequest, cluster: str, number: int) -> HttpResponse:
        rule = rules.rule_numbered(cluster, number)
        return self.form(MaskingForm(initial=initial_of(rule)), rule)

    def post(self, request: HttpRequest, cluster: str, number: int) -> HttpResponseBase:
        rule = rules.rule_numbered(cluster, number)
        if "delete" not in request.POST:
            return self.submitted(request, rule)
        check_scope(request, not rule.cluster, rule)
        is_typed = "typed_name" in request.POST
        form = TypedNameForm(request.POST if is_typed else None, expected=rule.name)
        if not form.is_valid():
            return self.to_confirm(rule, form, status=422 if is_typed else 200)
        about: dict[str, Any] = {"cluster": cluster, "target": rule.name, "before": rule.state}
        with audited(request, "masking-rule.delete", **about):
            rules.delete(request.user, rule)
        messages.success(request, _("The rule is deleted."))
        return redirect("masking:list", cluster=cluster)

    def to_confirm(self, rule: MaskingRule, form: TypedNameForm, status: int) -> HttpResponse:
        """Show what the deletion uncovers, with a form for the rule's name."""
        rules.check_may_show(self.request.user, rule)
        crumbs = [
            Crumb(_("Masked fields"), reverse("masking:list", args=[self.cluster.name])),
            Crumb(rule.name, reverse("masking:rule", args=[self.cluster.name, rule.pk])),
            Crumb(_("Delete rule")),
        ]
        title = _("Delete rule")
        return self.show(title=title, crumbs=crumbs, removal=form, rule=rule, status=status)


def check_scope(request: Any, all_clusters: bool, rule: MaskingRule | None) -> None:
    """Raise PermissionDenied without the permission for all clusters, where the rule has it before
    or after the change."""
    if all_clusters or (rule is not None and not rule.cluster):
        check_may(request, Need.ADMIN, Target(RESOURCE))

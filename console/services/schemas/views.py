"""Pages of body schemas and their rules."""

from typing import Any, Final

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.audit.recording import audited
from console.frame.access import Need, may, needs, readable_names
from console.frame.confirmations import ASK, Confirmation
from console.frame.forms import TablerForm
from console.frame.pages import ClusterPage, Crumb
from console.frame.targets import target_of
from console.frame.versions import (
    CHANGED_MEANWHILE,
    check_posted,
    posted_version,
    shown_version,
)
from console.gateway import GatewayError, PreconditionFailed
from console.gateway.changes import check_unchanged
from console.gateway.topics.listing import topic_rows
from console.services.schemas import stored
from console.services.schemas.deletion import consequences
from console.services.schemas.forms import FRAMINGS, RuleForm, SchemaForm, initial_of
from console.services.schemas.models import BodyRule, BodySchema

#: Version in a form for a schema that does not exist yet.
ABSENT: Final = "none"
SCHEMA_EXISTS: Final = gettext_lazy(
    "There is a schema of this name, or somebody else has changed the schema since you opened the "
    "page. To replace the schema, choose the file again and save."
)


class SchemaListPage(ClusterPage):
    """The rules and schemas of a cluster."""

    template = "schemas/list.html"
    area = "message"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        framings = dict(FRAMINGS)
        rules = [(each, framings[each.framing]) for each in stored.rules_of(cluster)]
        crumbs = _crumbs(self)
        rows = stored.schemas_of(cluster)
        return self.show(title=_("Body schemas"), crumbs=crumbs, rules=rules, rows=rows)


class SchemaPage(ClusterPage):
    """One schema: its types; deletion."""

    template = "schemas/schema.html"
    area = "message"
    writes_cluster = False
    actions = {"post": "body-schema.delete"}

    def get(self, request: HttpRequest, cluster: str, schema: str) -> HttpResponse:
        found = stored.schema_named(cluster, schema)
        types = stored.types_of(found)
        rules = found.rules.all()
        is_asked = request.GET.get(ASK) == "delete" and not rules
        target = target_of(type(self), self.kwargs, request.GET)
        may_delete = is_asked and may(request.user, Need.WRITE, target)
        return self.show(
            title=found.name,
            crumbs=_crumbs(self, found.name),
            schema=found,
            types=types,
            rules=rules,
            confirmation=_of_schema(found) if may_delete else None,
        )

    def post(self, request: HttpRequest, cluster: str, schema: str) -> HttpResponseBase:
        found = stored.schema_named(cluster, schema)
        about: dict[str, Any] = {"cluster": cluster, "target": found.name, "before": found.state}
        with audited(request, "body-schema.delete", **about):
            stored.delete_schema(found)
        messages.success(request, _("The body schema is deleted."))
        return redirect("schemas:list", cluster=cluster)


class FormPage(ClusterPage):
    """Base of the pages with a form."""

    template = "schemas/form.html"
    area = "message"
    writes_cluster = False

    def form(self, title: str, form: TablerForm, status: int = 200, **more: Any) -> HttpResponse:
        crumbs = _crumbs(self, title)
        if rule := more.get("rule"):
            more.setdefault("version", shown_version(self.request, stored.version(rule)))
        return self.show(title=title, crumbs=crumbs, form=form, status=status, **more)


@needs(Need.WRITE)
class SchemaUploadPage(FormPage):
    """Creates or replaces a schema."""

    actions = {"post": "body-schema.update"}

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        name = request.GET.get("name", "")
        version = stored.schema_version(stored.schema_or_none(cluster, name))
        form = SchemaForm(initial={"name": name})
        return self.form(_("Upload a schema"), form, version=version or ABSENT)

    def post(self, request: HttpRequest, cluster: str) -> HttpResponseBase:
        form, title = SchemaForm(request.POST, request.FILES), _("Upload a schema")
        shown = posted_version(request)
        if not form.is_valid():
            return self.form(title, form, status=422, version=shown)
        name = form.cleaned_data["name"]
        values = (form.kind, form.cleaned_data["content"], request.user)
        # A form for another name, or for a schema that is gone, creates a schema.
        found = stored.schema_or_none(cluster, name)
        expected = None if shown is None else shown if found else ""
        try:
            check_unchanged(expected, stored.schema_version(found))
            with audited(request, "body-schema.update", cluster=cluster, target=name) as entry:
                saved = stored.save_schema(
                    cluster, name, *values, is_source=form.is_source, expected=expected
                )
                entry.after = saved.state
        except PreconditionFailed:
            form.add_error("name", SCHEMA_EXISTS)
            version = stored.schema_version(stored.schema_or_none(cluster, name))
            return self.form(title, form, status=409, version=version or ABSENT)
        except (ValidationError, GatewayError) as fault:
            return self.form(title, _refused(form, fault), status=422, version=shown)
        messages.success(request, _("The body schema is saved."))
        return redirect("schemas:schema", cluster=cluster, schema=name)


@needs(Need.WRITE)
class RuleCreatePage(FormPage):
    actions = {"post": "body-rule.create"}

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        initial = {name: request.GET.get(name, "") for name in ("topic", "schema", "type_name")}
        return self.form(_("Create a rule"), RuleForm(initial=initial, cluster=cluster))

    def post(self, request: HttpRequest, cluster: str) -> HttpResponseBase:
        return _saved(self, request, None, _("Create a rule"))


@needs(Need.WRITE)
class RulePage(FormPage):
    """One rule: edit, delete."""

    actions = {"post": "body-rule.update"}

    def get(self, request: HttpRequest, cluster: str, number: int) -> HttpResponse:
        rule = stored.rule_numbered(cluster, number)
        form = RuleForm(initial=initial_of(rule), cluster=cluster)
        asked = request.GET.get(ASK) == "delete"
        confirmation = self.confirmation(rule) if asked else None
        return self.form(rule.topic, form, rule=rule, confirmation=confirmation)

    def confirmation(self, rule: BodyRule) -> Confirmation:
        """Ask before the deletion: which topics lose their decoder."""
        rows, _failures = self.ask_if_up(topic_rows)
        is_seen = readable_names(self.request.user, "topics", self.cluster.name)
        topics = None if rows is None else [row.name for row in rows if is_seen(row.name)]
        return Confirmation(
            question=_("Delete the rule “%(name)s”?") % {"name": rule.topic},
            button=_("Delete rule"),
            name="delete",
            consequences=consequences(rule.topic, stored.decoder_of(self.cluster.name), topics),
        )

    def post(self, request: HttpRequest, cluster: str, number: int) -> HttpResponseBase:
        rule = stored.rule_numbered(cluster, number)
        if "delete" not in request.POST:
            return _saved(self, request, rule, rule.topic)
        about: dict[str, Any] = {"cluster": cluster, "target": rule.topic, "before": rule.state}
        with audited(request, "body-rule.delete", **about):
            stored.delete_rule(rule)
        messages.success(request, _("The rule is deleted."))
        return redirect("schemas:list", cluster=cluster)


def _of_schema(schema: BodySchema) -> Confirmation:
    return Confirmation(
        question=_("Delete the schema “%(name)s”?") % {"name": schema.name},
        button=_("Delete schema"),
        name="delete",
        consequences=(
            _("No rule uses the schema. To have the schema again, upload the file again."),
        ),
    )


def _saved(
    page: FormPage, request: HttpRequest, rule: BodyRule | None, title: str
) -> HttpResponseBase:
    cluster = page.cluster.name
    form = RuleForm(request.POST, cluster=cluster)
    if not form.is_valid():
        return page.form(title, form, status=422, rule=rule)
    draft, expected = form.draft(), posted_version(request)
    action = "body-rule.update" if rule else "body-rule.create"
    before = rule.state if rule else None
    try:
        if rule:
            check_posted(request, stored.version(rule))
        with audited(request, action, cluster=cluster, target=draft.topic, before=before) as entry:
            saved = stored.save_rule(cluster, rule, draft, request.user, expected)
            entry.after = saved.state
    except PreconditionFailed:
        assert rule is not None  # a new rule has no version
        rule = stored.rule_numbered(cluster, rule.pk)
        form.add_error(None, CHANGED_MEANWHILE)
        return page.form(title, form, status=409, rule=rule, version=stored.version(rule))
    except (ValidationError, GatewayError) as fault:
        return page.form(title, _refused(form, fault), status=422, rule=rule)
    messages.success(request, _("The rule is saved."))
    return redirect("schemas:list", cluster=cluster)


def _refused(form: TablerForm, fault: ValidationError | GatewayError) -> TablerForm:
    if isinstance(fault, GatewayError):
        form.add_error(None, str(fault.detail))
    else:
        for name, reasons in fault.message_dict.items():
            form.add_error(name, reasons)
    return form


def _crumbs(page: ClusterPage, title: str = "") -> list[Crumb]:
    cluster = page.cluster.name
    crumbs = [Crumb(_("Messages"), reverse("message:list", args=[cluster]))]
    if not title:
        return [*crumbs, Crumb(_("Body schemas"))]
    return [
        *crumbs,
        Crumb(_("Body schemas"), reverse("schemas:list", args=[cluster])),
        Crumb(title),
    ]

"""A kind of configured resource: the parameters of the generic pages and REST resources.

An area defines a `Resource` for its kind. `pages.py` and `api.py` derive the pages and REST
resources that create, edit, delete, protect and undo:

    TOPIC = Resource(kind=Kind.TOPIC, texts=…, create=create_topic, create_form=TopicCreateForm, …)

    urlpatterns = [path("topics/", TopicListPage.as_view(), name="list"), *page_urls(TOPIC)]

URL names follow from the kind: namespace `topics`, argument `topic`. The template
`topics/impact.html` shows the impact of a deletion.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from console.frame.access import Need
from console.frame.forms import TablerForm, TypedNameForm
from console.frame.pages import Crumb
from console.gateway import BrokerRef, Cluster
from console.gateway.brokers.listing import broker_names
from console.gateway.changes import BrokerOutcome, FieldChange
from console.gateway.engine.questions import Command, Question
from console.resources.forms import ResourceForm
from console.resources.models import Kind

#: Configuration of a resource by broker.
Configs = Sequence[tuple[BrokerRef, Any]]
Outcomes = Sequence[BrokerOutcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """Labels and messages of a kind, as lazy translations. `%s` is the resource name."""

    list_title: Any
    changed: Any
    create_title: Any = ""
    create: Any = ""
    created: Any = ""
    delete: Any = ""
    deleted: Any = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """The secret of a kind: see `secrets.py`. Texts are lazy translations; `%s` in `changed` and
    `shown_once` is the resource name."""

    #: Form field, REST member, and attribute of the settings.
    member: str
    #: Arguments: name, secret; `dry_run` only checks.
    set: Command[..., Outcomes]
    generate: Callable[[], str]
    #: A form with the field `member`; an empty value asks for a generated secret.
    form: type[TablerForm]
    serializer: type[serializers.Serializer[Any]]
    #: Serializer of the response with the generated secret.
    new_serializer: type[serializers.Serializer[Any]]
    title: Any
    warning: Any
    change: Any
    changed: Any
    shown_once: Any

    @property
    def verb(self) -> str:
        """The member in URLs and in the audit list."""
        return self.member.replace("_", "-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Editable:
    """A kind of object that brokers hold and the console edits: preview, change and undo."""

    kind: Kind
    texts: Texts
    #: Configuration by broker; raises NotFound when no broker has the object.
    configs: Callable[[Cluster, str], Configs]
    #: Arguments: name, settings, broker names or None for all, expected ETag or None.
    update: Command[..., Outcomes]
    #: Differences between configurations and settings, by broker and field.
    differences: Callable[[Configs, Any], Sequence[FieldChange]]
    #: Settings of a configuration by RocketMQ's names; `settings_from` is the inverse.
    fields_of: Callable[[Any], Mapping[str, Any]]
    settings_from: Callable[[Mapping[str, Any]], Any]
    edit_form: type[ResourceForm]
    patch_serializer: type[serializers.Serializer[Any]]
    #: What a change would endanger; arguments: name, settings, broker names or None for all.
    risks: Question[..., Sequence[Any]] | None = None
    #: Query parameter, form field and keyword of `create` and `update` that accepts the risks.
    #: Without the keyword, the commands raise NotAllowedNow. The template
    #: `<namespace>/risks.html` shows the risks.
    confirm: OpenApiParameter | None = None
    #: Need of all pages and REST resources of the kind; None: those of the generic classes.
    need: Need | None = None

    @property
    def namespace(self) -> str:
        """The URL namespace of the area, such as `topics`."""
        return f"{self.kind.value}s"

    @property
    def path(self) -> str:
        """The kind in URLs, such as `topics`."""
        return self.namespace.replace("_", "-")

    @property
    def argument(self) -> str:
        """The URL argument for the name, such as `topic`."""
        return str(self.kind.value)

    @property
    def declared_need(self) -> dict[str, Need]:
        """The member `need` of the view classes; empty without a need of the kind."""
        return {} if self.need is None else {"need": self.need}

    def confirmed(self, given: Mapping[str, Any]) -> dict[str, bool]:
        """Keywords for `create` and `update`: the confirmation, where `given` has one."""
        return {self.confirm.name: True} if self.confirm and self.confirm.name in given else {}

    def action(self, verb: str) -> str:
        """The name of an action in the audit list, such as `topic.create`."""
        return f"{self.kind.value}.{verb}"

    def list_url(self, cluster: str) -> str:
        return reverse(f"{self.namespace}:list", args=[cluster])

    def url(self, cluster: str, name: str, page: str = "detail") -> str:
        return reverse(f"{self.namespace}:{page}", args=[cluster, name])

    def crumbs(self, cluster: str, name: str | None = None) -> list[Crumb]:
        """Breadcrumbs of the list, or of the page of a resource."""
        crumbs = [Crumb(str(self.texts.list_title), self.list_url(cluster))]
        return crumbs if name is None else [*crumbs, Crumb(name, self.url(cluster, name))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource(Editable):
    """A kind of configured resource: an `Editable` that is created and deleted, too."""

    #: Impact of a deletion; `.clients` is the number of connected clients, or
    #: None when the number is unknown.
    impact: Question[[str], Any]
    #: Names of the brokers that the form of a new resource offers.
    brokers: Question[[], tuple[str, ...]] = broker_names
    #: Arguments: name, settings, broker names or None for all; `dry_run` only checks.
    create: Command[..., Outcomes]
    #: Configuration of a new resource; arguments: name, settings.
    new_config: Callable[[str, Any], Any]
    #: Arguments: name, `expected_etag`, a keyword per flag of `delete_flags`. `dry_run` only
    #: checks.
    delete: Command[..., Outcomes]
    create_form: type[ResourceForm]
    delete_form: type[TypedNameForm] = TypedNameForm
    create_serializer: type[serializers.Serializer[Any]]
    impact_serializer: type[serializers.Serializer[Any]]
    #: The impact as the REST resource returns it.
    impact_body: Callable[[Any], Mapping[str, Any]]
    #: What the creation with these settings on the named brokers would endanger.
    new_risks: Callable[[str, Any, Sequence[str]], Sequence[Any]] | None = None
    #: Query parameters (and fields of `delete_form`) that extend a deletion.
    delete_flags: tuple[OpenApiParameter, ...] = field(default=())
    secret: Secret | None = None


def risks_of(
    cluster: Cluster, resource: Editable, name: str, settings: Any, brokers: Sequence[str] | None
) -> Sequence[Any]:
    """What a change would endanger; empty for kinds without risks."""
    if resource.risks is None:
        return ()
    named = tuple(brokers) if brokers else None
    risks: Sequence[Any] = cluster.ask(resource.risks, name, settings, named).value
    return risks

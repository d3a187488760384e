"""The secret of a resource, such as a password: a new one is set, a generated one is shown once.

A kind with `Resource.secret` derives the pages and the REST resource from this module. Secrets are
never returned afterwards, and are not recorded.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.flags import DRY_RUN, dry_run_body, read_flag
from console.api.serializers import outcomes_or_dry_run
from console.audit.masking import HIDDEN
from console.audit.recording import audited
from console.frame.forms import TablerForm
from console.frame.outcomes import tell_outcomes
from console.frame.pages import ClusterPage
from console.gateway.changes import BrokerOutcome, FieldChange
from console.resources.api import KindResource, ResourceList
from console.resources.pages import CreatePage, OneResourcePage
from console.resources.resource import Resource, Secret


def secret_of(resource: Resource) -> Secret:
    assert resource.secret is not None, f"{resource.kind} has no secret"
    return resource.secret


class SecretCreatePage(CreatePage):
    """Creates a resource. A generated secret is shown only in the response to the form."""

    def created(self, name: str, settings: Any, outcomes: Sequence[BrokerOutcome]) -> HttpResponse:
        member = secret_of(self.resource).member
        if self.request.POST.get(member):
            return super().created(name, settings, outcomes)
        tell_outcomes(self.request, outcomes, str(self.resource.texts.created) % name)
        return _show(self, self.resource, name, getattr(settings, member))


class SecretPage(OneResourcePage):
    """Sets a new secret; a generated one is shown only in the response to the form."""

    template = "resources/secret.html"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if hasattr(cls, "resource"):
            cls.verb = secret_of(cls.resource).verb
        super().__init_subclass__(**kwargs)

    def get(self, request: HttpRequest, cluster: str, **_names: str) -> HttpResponse:
        self.configs()  # 404 for a resource that does not exist
        return self.form(secret_of(self.resource).form())

    def post(self, request: HttpRequest, cluster: str, **_names: str) -> HttpResponse:
        secret, name = secret_of(self.resource), self.name
        form = secret.form(request.POST)
        if not form.is_valid():
            return self.form(form, status=422)
        given = form.cleaned_data[secret.member]
        value = given or secret.generate()
        action = self.resource.action(secret.verb)
        with audited(request, action, cluster=cluster, target=name) as entry:
            outcomes = self.cluster.do(secret.set, name, value)
            entry.outcomes(outcomes)
        tell_outcomes(request, outcomes, str(secret.changed) % name)
        return _show(self, self.resource, name, None if given else value)

    def form(self, form: TablerForm, status: int = 200) -> HttpResponse:
        secret = secret_of(self.resource)
        title = str(secret.title)
        return self.show(
            title=title, crumbs=self.crumbs(title), status=status, form=form, secret=secret
        )


def _show(page: ClusterPage, resource: Resource, name: str, value: str | None) -> HttpResponse:
    """The page after a change of a secret, with the generated secret; no cache may store it."""
    cluster = page.cluster.name
    page.template = "resources/secret_shown.html"  # type: ignore[misc]
    secret = secret_of(resource)
    response = page.show(
        title=name,
        crumbs=resource.crumbs(cluster, name),
        name=name,
        value=value,
        changed=str(secret.changed) % name,
        shown_once=str(secret.shown_once) % name,
        url=resource.url(cluster, name),
    )
    response.headers["Cache-Control"] = "no-store"
    return response


class SecretResourceList(ResourceList):
    """The list of a kind with a secret. The response to a creation has a generated secret."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if hasattr(cls, "resource"):
            secret = secret_of(cls.resource)
            cls.created_serializer = secret.new_serializer
            cls.secret_members = frozenset({secret.member})
        super().__init_subclass__(**kwargs)

    def created(self, name: str, settings: Any, outcomes: Sequence[BrokerOutcome]) -> Response:
        member = secret_of(self.resource).member
        response = super().created(name, settings, outcomes)
        given: Any = self.request.data
        return _with_secret(
            response, member, None if given.get(member) else getattr(settings, member)
        )


class NewSecret(KindResource):
    """A new secret of a resource."""

    secret_members: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if hasattr(cls, "resource"):
            secret = secret_of(cls.resource)
            cls.verbs = {"post": secret.verb}
            cls.secret_members = frozenset({secret.member})
        super().__init_subclass__(**kwargs)

    @classmethod
    def schemas(cls) -> dict[str, Any]:
        secret = secret_of(cls.resource)
        responses = outcomes_or_dry_run(secret.new_serializer)
        return {
            "post": extend_schema(
                parameters=[DRY_RUN], request=secret.serializer, responses=responses
            )
        }

    def post(self, request: Request, cluster: str, **_names: str) -> Response:
        """Set a new secret on all brokers; the old secret is refused at once.

        Without a secret in the request, the console generates one and returns it in this response
        only.
        """
        resource, secret = self.resource, secret_of(self.resource)
        name = str(self.kwargs[resource.argument])
        form: Any = secret.serializer(data=request.data)
        form.is_valid(raise_exception=True)
        given = form.validated_data.get(secret.member)
        value = given or secret.generate()
        if read_flag(request, "dry_run"):
            checked = self.cluster.do(secret.set, name, value, dry_run=True)
            lines = [FieldChange(each.broker, secret.member, HIDDEN, HIDDEN) for each in checked]
            return Response(dry_run_body(name, lines))
        action = resource.action(secret.verb)
        with audited(request, action, cluster=cluster, target=name) as entry:
            outcomes = self.cluster.do(secret.set, name, value)
            entry.outcomes(outcomes)
        return _with_secret(self.changed(name, outcomes), secret.member, None if given else value)


def _with_secret(response: Response, member: str, value: str | None) -> Response:
    """Add a generated secret to a response that no cache may store."""
    response.data[member] = value
    response["Cache-Control"] = "no-store"
    return response


def new_secret_member() -> serializers.CharField:
    """The member of a response with a generated secret."""
    return serializers.CharField(
        allow_null=True,
        help_text="The generated secret, returned only once; null for a secret of the request, and "
        "in a repeated response of an Idempotency-Key.",
    )


def secret_page_url(resource: Resource) -> URLPattern:
    one, verb = resource.argument, secret_of(resource).verb
    page = SecretPage.of(resource)
    return path(f"{resource.path}/<name:{one}>/{verb}/", page, name=verb)


def secret_api_url(resource: Resource) -> URLPattern:
    one, verb = resource.argument, secret_of(resource).verb
    view = NewSecret.of(resource)
    return path(f"{resource.path}/<name:{one}>/{verb}", view, name=f"api-{one}-{verb}")

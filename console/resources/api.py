"""REST resources that create, change, delete and protect resources of any kind.

An area derives its list from `ResourceList` and its single resource from `ResourceOne`, adds `get`,
and mounts the others with `api_urls`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from django.urls import URLPattern, path, reverse
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.flags import CONFIRM, DRY_RUN, dry_run_body, read_flag
from console.api.serializers import DryRunSerializer, OutcomesSerializer, outcomes_or_dry_run
from console.api.views import IF_MATCH, ClusterResource, expected_etag, told_with
from console.audit.recording import audited
from console.frame.access import Need, check_may, need_of, needs
from console.frame.targets import target_of
from console.gateway import NotAllowedNow
from console.gateway.changes import (
    BrokerOutcome,
    FieldChange,
    check_unchanged,
    configs_on,
    etag_of,
    states,
    states_with,
)
from console.resources import bulk, deletion, history, left_labels
from console.resources.protection import (
    check_confirmed,
    check_deletable,
    is_protected,
    set_protection,
)
from console.resources.resource import Editable, Resource, risks_of


class ProtectionSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    protected = serializers.BooleanField()


def confirmations(resource: Editable) -> list[OpenApiParameter]:
    """The parameter that accepts the risks of a change, for kinds with risks."""
    return [resource.confirm] if resource.confirm else []


def read_confirmation(request: Request, resource: Editable) -> dict[str, bool]:
    """The keywords of the commands that create and update."""
    return {each.name: read_flag(request, each.name) for each in confirmations(resource)}


class EditableResource(ClusterResource):
    """A REST resource of an editable kind. `verbs` are the audited actions by method."""

    resource: ClassVar[Editable]
    verbs: ClassVar[dict[str, str]] = {}
    actions: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if hasattr(cls, "resource"):
            cls.actions = {method: cls.resource.action(verb) for method, verb in cls.verbs.items()}
            extend_schema_view(**cls.schemas())(cls)

    @classmethod
    def schemas(cls) -> dict[str, Any]:
        """OpenAPI schemas of methods with bodies that depend on the kind."""
        return {}

    @classmethod
    def of(cls, resource: Editable) -> Any:
        """The view function for a kind."""
        name = f"{resource.kind.name.title()}{cls.__name__}"
        members = {"resource": resource, "__doc__": cls.__doc__, **resource.declared_need}
        view = type(name, (cls,), members)
        return view.as_view()  # type: ignore[attr-defined]


class KindResource(EditableResource):
    """A REST resource of a configured resource."""

    resource: ClassVar[Resource]


class ResourceList(KindResource):
    """The list of a kind. Subclasses add `get`."""

    verbs = {"post": "create"}
    created_serializer: ClassVar[type[serializers.Serializer[Any]]] = OutcomesSerializer

    @classmethod
    def schemas(cls) -> dict[str, Any]:
        request = cls.resource.create_serializer
        responses = {
            200: DryRunSerializer,
            201: cls.created_serializer,
            207: cls.created_serializer,
        }
        parameters = [DRY_RUN, *confirmations(cls.resource)]
        return {"post": extend_schema(parameters=parameters, request=request, responses=responses)}

    def post(self, request: Request, cluster: str) -> Response:
        """Create a resource; 409 when a broker already has the resource.

        With `dry_run`, the response has status 200 and the new settings, and nothing is created.
        """
        resource = self.resource
        form: Any = resource.create_serializer(data=request.data)
        form.is_valid(raise_exception=True)
        name, settings = form.validated_data["name"], form.settings()
        target = replace(target_of(type(self), self.kwargs, {}), name=name)
        check_may(request, need_of(self, request.method), target)
        brokers = form.validated_data.get("brokers")
        confirmed = read_confirmation(request, resource)
        if read_flag(request, "dry_run"):
            checked = self.cluster.do(resource.create, name, settings, brokers, dry_run=True)
            fields = resource.fields_of(resource.new_config(name, settings))
            lines = [
                FieldChange(outcome.broker, field, None, value)
                for outcome in checked
                for field, value in fields.items()
            ]
            names = [outcome.broker for outcome in checked]
            risks = resource.new_risks(name, settings, names) if resource.new_risks else ()
            return Response(dry_run_body(name, lines, resource.confirm, risks))
        with audited(request, resource.action("create"), cluster=cluster, target=name) as entry:
            left_labels.forget_before(self.cluster, resource, name, settings, brokers)
            outcomes = self.cluster.do(resource.create, name, settings, brokers, **confirmed)
            entry.after = settings
            entry.outcomes(outcomes)
        return self.created(name, settings, outcomes)

    def created(self, name: str, settings: Any, outcomes: Sequence[BrokerOutcome]) -> Response:
        """Respond after the creation; `settings` are those of the request."""
        location = reverse(f"api-{self.resource.argument}", args=[self.cluster.name, name])
        return self.changed(name, outcomes, done=status.HTTP_201_CREATED, location=location)


class EditableOne(EditableResource):
    """A single object that is changed. Subclasses add `get`."""

    verbs = {"patch": "update"}

    @classmethod
    def schemas(cls) -> dict[str, Any]:
        return {
            "patch": extend_schema(
                parameters=[IF_MATCH, DRY_RUN, *confirmations(cls.resource)],
                request=cls.resource.patch_serializer,
                responses=outcomes_or_dry_run(),
            )
        }

    @property
    def name(self) -> str:
        return str(self.kwargs[self.resource.argument])

    def patch(self, request: Request, cluster: str, **_names: str) -> Response:
        """Change settings on all brokers of the resource, or on the named brokers.

        With `dry_run`, the response has the differences and nothing is changed.
        """
        resource, name, etag = self.resource, self.name, expected_etag(request)
        form: Any = resource.patch_serializer(data=request.data)
        form.is_valid(raise_exception=True)
        settings, brokers = form.settings(), form.validated_data.get("brokers")
        confirmed = read_confirmation(request, resource)
        configs = resource.configs(self.cluster, name)
        check_unchanged(etag, etag_of(configs))
        chosen = configs_on(configs, brokers)
        lines = resource.differences(chosen, settings)
        if read_flag(request, "dry_run"):
            risks = risks_of(self.cluster, resource, name, settings, brokers)
            return Response(dry_run_body(name, lines, resource.confirm, risks))
        with audited(request, resource.action("update"), **self.audit_context()) as entry:
            outcomes = self.cluster.do(resource.update, name, settings, brokers, etag, **confirmed)
            entry.after = states_with(chosen, settings)
            entry.outcomes(outcomes)
        history.keep(request.user, cluster, resource.kind, name, lines, outcomes)
        return self.changed(name, outcomes)

    def audit_context(self) -> dict[str, Any]:
        """Target and present state of the resource, for the audit entry."""
        before = states(self.resource.configs(self.cluster, self.name))
        return {"cluster": self.cluster.name, "target": self.name, "before": before}


class ResourceOne(EditableOne, KindResource):
    """A single resource. Subclasses add `get` and `delete_description`, OpenAPI text of DELETE."""

    verbs = {"patch": "update", "delete": "delete"}
    delete_description: ClassVar[str]

    @classmethod
    def schemas(cls) -> dict[str, Any]:
        delete = extend_schema(
            parameters=[IF_MATCH, *cls.resource.delete_flags, CONFIRM, DRY_RUN],
            description=cls.delete_description,
            responses=outcomes_or_dry_run(),
        )
        return {**super().schemas(), "delete": delete}

    @needs(Need.ADMIN)
    def delete(self, request: Request, cluster: str, **_names: str) -> Response:
        resource, name = self.resource, self.name
        flags = {flag.name: read_flag(request, flag.name) for flag in resource.delete_flags}
        etag = expected_etag(request)
        if read_flag(request, "dry_run"):
            self.check_delete(request)
            self.cluster.do(resource.delete, name, expected_etag=etag, dry_run=True, **flags)
            lines = [
                FieldChange(ref.name, field, value, None)
                for ref, config in resource.configs(self.cluster, name)
                for field, value in resource.fields_of(config).items()
            ]
            return Response(dry_run_body(name, lines))
        with audited(request, resource.action("delete"), **self.audit_context()) as entry:
            self.check_delete(request)
            outcomes = deletion.delete_one(
                self.cluster, resource, name, expected_etag=etag, **flags
            )
            entry.outcomes(outcomes)
        return self.changed(name, outcomes)

    def check_delete(self, request: Request) -> None:
        """Raise the problem of a protected resource, or of connected clients without `confirm`."""
        check_deletable(self.cluster.name, self.resource.kind, self.name)
        clients = self.cluster.ask(self.resource.impact, self.name).value.clients
        check_confirmed(self.name, request.query_params.get("confirm"), clients)


class Impact(KindResource):
    """Impact of a deletion."""

    @classmethod
    def schemas(cls) -> dict[str, Any]:
        return {"get": extend_schema(responses=cls.resource.impact_serializer)}

    def get(self, request: Request, cluster: str, **_names: str) -> Response:
        """Data and clients affected by a deletion."""
        name = self.kwargs[self.resource.argument]
        answer = self.cluster.ask(self.resource.impact, name)
        protected = is_protected(cluster, self.resource.kind, name)
        body = self.resource.impact_body(answer.value)
        return Response({**body, "protected": protected, **told_with(answer)})


class Protection(KindResource):
    """Protection from deletion."""

    verbs = {"put": "protect", "delete": "unprotect"}

    @extend_schema(responses=ProtectionSerializer)
    def get(self, request: Request, cluster: str, name: str) -> Response:
        """Protection state of a resource."""
        return self.present(cluster, name)

    @extend_schema(request=None, responses=ProtectionSerializer)
    @needs(Need.ADMIN)
    def put(self, request: Request, cluster: str, name: str) -> Response:
        """Protect a resource from deletion in this console, until the protection is removed."""
        set_protection(request, cluster, self.resource.kind, name, on=True)
        return self.present(cluster, name)

    @extend_schema(responses=ProtectionSerializer)
    @needs(Need.ADMIN)
    def delete(self, request: Request, cluster: str, name: str) -> Response:
        """Remove the protection."""
        set_protection(request, cluster, self.resource.kind, name, on=False)
        return self.present(cluster, name)

    def present(self, cluster: str, name: str) -> Response:
        protected = is_protected(cluster, self.resource.kind, name)
        return Response({"name": name, "protected": protected})


@needs(Need.ADMIN)
class BulkDelete(KindResource):
    """Bulk deletion, with a result per resource."""

    verbs = {"post": "delete-many"}

    @extend_schema(
        parameters=[DRY_RUN],
        request=bulk.DeleteNamesSerializer,
        responses={200: bulk.BulkSerializer, 207: bulk.BulkSerializer},
    )
    def post(self, request: Request, cluster: str) -> Response:
        """Delete several resources. Protected resources and resources with clients are refused."""
        form = bulk.DeleteNamesSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        names = form.validated_data["names"]
        if form.validated_data["dry_run"] or read_flag(request, "dry_run"):
            return Response(bulk.body(deletion.preview(self.cluster, self.resource, names)))
        confirmed = form.validated_data.get("confirm") == len(set(names))
        results = deletion.delete_all(
            request, self.cluster, self.resource, names, confirmed=confirmed
        )
        return Response(bulk.body(results), bulk.status(results))


class BulkUpdate(KindResource):
    """Bulk update with the same settings, with a result per resource."""

    verbs = {"post": "update-many"}
    names_serializer: ClassVar[type[serializers.Serializer[Any]]]

    @classmethod
    def schemas(cls) -> dict[str, Any]:
        responses = {200: bulk.BulkSerializer, 207: bulk.BulkSerializer}
        return {
            "post": extend_schema(
                parameters=[DRY_RUN, *confirmations(cls.resource)],
                request=cls.names_serializer,
                responses=responses,
            )
        }

    def post(self, request: Request, cluster: str) -> Response:
        """Change several resources. A dry run lists the resources that cannot be changed."""
        resource = self.resource
        form: Any = self.names_serializer(data=request.data)
        form.is_valid(raise_exception=True)
        names, settings = form.validated_data["names"], form.settings()
        brokers = form.validated_data.get("brokers")
        confirmed = read_confirmation(request, resource)

        def check(name: str) -> Sequence[BrokerOutcome]:
            resource.configs(self.cluster, name)
            if not any(confirmed.values()):
                check_risks(risks_of(self.cluster, resource, name, settings, brokers), resource)
            return ()

        if form.validated_data["dry_run"] or read_flag(request, "dry_run"):
            return Response(bulk.body(bulk.dry_run(bulk.apply_each(names, check))))

        def update(name: str) -> Sequence[BrokerOutcome]:
            configs = resource.configs(self.cluster, name)
            lines = resource.differences(configs_on(configs, brokers), settings)
            outcomes = self.cluster.do(resource.update, name, settings, brokers, **confirmed)
            history.keep(request.user, cluster, resource.kind, name, lines, outcomes)
            return outcomes

        target = ", ".join(dict.fromkeys(names))
        action = resource.action("update-many")
        with audited(request, action, cluster=cluster, target=target) as entry:
            results = bulk.apply_each(names, update)
            entry.after = settings
            entry.outcomes(results)
        return Response(bulk.body(results), bulk.status(results))


def check_risks(risks: Sequence[Any], resource: Editable) -> None:
    """Raise NotAllowedNow for a dry run with risks that the request does not accept."""
    if risks and resource.confirm:
        raise NotAllowedNow(
            format_lazy(_("Needs {confirm}=true."), confirm=resource.confirm.name),
            hint=resource.confirm.description,
        )


def api_urls(resource: Resource) -> list[URLPattern]:
    """URLs of impact, protection and bulk deletion of a kind of resource."""
    one, many = resource.argument, resource.path
    return [
        path(f"{many}/<name:{one}>/impact", Impact.of(resource), name=f"api-{one}-impact"),
        path(
            f"{many}/<name:name>/protection", Protection.of(resource), name=f"api-{one}-protection"
        ),
        path(f"{many}:delete", BulkDelete.of(resource), name=f"api-{resource.namespace}-delete"),
    ]

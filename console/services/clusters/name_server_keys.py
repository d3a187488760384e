"""Key-value settings of the name servers: page and REST resource, with preview and drift."""

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.flags import DRY_RUN, dry_run_body, read_flag
from console.api.serializers import AnsweredSerializer, BodySerializer, outcomes_or_dry_run
from console.api.views import IF_MATCH, ClusterResource, expected_etag, told_with
from console.audit.recording import audited
from console.frame.access import Need, needs, readable_names
from console.frame.forms import TablerForm
from console.frame.outcomes import tell_outcomes
from console.frame.pages import ClusterPage
from console.gateway import Cluster, GatewayError
from console.gateway.brokers.name_server_keys import (
    KEY_CHARS_MAX,
    KNOWN_NAMESPACES,
    NAMESPACE_CHARS_MAX,
    ORDER_NAMESPACE,
    VALUE_CHARS_MAX,
    KeyValue,
    NamespaceKeys,
    change_name_server_key,
    differences,
    name_server_keys,
)
from console.gateway.changes import BrokerOutcome, check_unchanged

PUT_ACTION = "name-server-key.put"
DELETE_ACTION = "name-server-key.delete"


class KeyForm(TablerForm):
    """A key with its new value."""

    key = forms.CharField(label=gettext_lazy("Key"), max_length=KEY_CHARS_MAX)
    value = forms.CharField(
        label=gettext_lazy("New value"),
        max_length=VALUE_CHARS_MAX,
        required=False,
        help_text=gettext_lazy("For ORDER_TOPIC_CONFIG: broker-a:4;broker-b:4"),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs |= {"autocomplete": "off", "spellcheck": "false"}


class NameServerKeysPage(ClusterPage):
    """The keys of a namespace with the value of each name server; form with preview."""

    template = "clusters/name_server_keys.html"
    actions = {"post": PUT_ACTION}

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        key = request.GET.get("key", "")[:KEY_CHARS_MAX]
        row = self.state(self.namespace()).row(key) if key else None
        form = KeyForm(initial={"key": key, "value": row.value if row else ""})
        return self.form(form)

    @needs(Need.ADMIN)
    def post(self, request: HttpRequest, cluster: str) -> HttpResponseBase:
        form = KeyForm(request.POST)
        if not form.is_valid() or "change" in request.POST:
            return self.form(form, status=200 if form.is_valid() else 422)
        namespace, key = self.namespace(), form.cleaned_data["key"]
        deleting = "delete" in request.POST
        value = None if deleting else form.cleaned_data["value"]
        state = self.state(namespace)
        lines = differences(state, key, value)
        if not lines or "save" not in request.POST:
            return self.form(form, changes=lines, previewed=True, deleting=deleting)
        try:
            outcomes = changed(
                request, self.cluster, state, key, value, request.POST.get("etag") or None
            )
        except GatewayError as refused:
            form.add_error("value", str(refused.detail))
            return self.form(form, status=422)
        said = _("“%s” is deleted.") if deleting else _("“%s” is changed.")
        tell_outcomes(request, outcomes, said % key)
        url = reverse("clusters:name-server-keys", args=[cluster])
        return redirect(f"{url}?{urlencode({'namespace': namespace})}")

    def namespace(self) -> str:
        return (
            self.request.GET.get("namespace", "").strip()[:NAMESPACE_CHARS_MAX] or ORDER_NAMESPACE
        )

    def state(self, namespace: str) -> NamespaceKeys:
        return self.cluster.ask(name_server_keys, namespace).value

    def form(self, form: KeyForm, status: int = 200, **more: Any) -> HttpResponse:
        namespace = self.namespace()
        answer = self.cluster.ask(name_server_keys, namespace)
        rows = seen_rows(self.request.user, self.cluster, answer.value)
        return self.show(
            title=_("Name servers"),
            answer=answer,
            state=answer.value,
            rows=rows,
            unseen=len(answer.value.rows) - len(rows),
            namespaces=list(dict.fromkeys((*KNOWN_NAMESPACES, namespace))),
            form=form,
            status=status,
            **more,
        )


def seen_rows(user: Any, cluster: Cluster, state: NamespaceKeys) -> tuple[KeyValue, ...]:
    """Return the keys that the user sees: those of ORDER_TOPIC_CONFIG are names of topics."""
    if state.namespace != ORDER_NAMESPACE:
        return state.rows
    is_seen = readable_names(user, "topics", cluster.name)
    return tuple(row for row in state.rows if is_seen(row.key))


def changed(
    request: HttpRequest | Request,
    cluster: Cluster,
    state: NamespaceKeys,
    key: str,
    value: str | None,
    etag: str | None,
) -> tuple[BrokerOutcome, ...]:
    """Change a key on all name servers, with an audit row."""
    action = DELETE_ACTION if value is None else PUT_ACTION
    target = f"{state.namespace}/{key}"
    before = dict(state.row(key).values)
    with audited(request, action, cluster=cluster.name, target=target, before=before) as entry:
        outcomes = cluster.do(change_name_server_key, state.namespace, key, value, etag)
        entry.after = {key: value}
        entry.outcomes(outcomes)
    return outcomes


class KeyValueSerializer(serializers.Serializer[Any]):
    """A key with the value of each name server."""

    key = serializers.CharField()
    values = serializers.DictField(
        child=serializers.CharField(allow_null=True),
        help_text="By address of the name server; null: the name server lacks the key.",
    )
    differs = serializers.BooleanField()


class KeyValueListSerializer(AnsweredSerializer):
    namespace = serializers.CharField()
    servers = serializers.ListField(child=serializers.CharField())
    items = KeyValueSerializer(many=True)
    unseen = serializers.IntegerField(
        help_text="Further keys: names of topics that the permissions of the caller do not include."
    )


class KeyValueFields(BodySerializer):
    """A key with its new value."""

    namespace = serializers.CharField(max_length=NAMESPACE_CHARS_MAX)
    key = serializers.CharField(max_length=KEY_CHARS_MAX)
    value = serializers.CharField(max_length=VALUE_CHARS_MAX, allow_blank=True)


NAMESPACE = OpenApiParameter(
    "namespace", OpenApiTypes.STR, description="`ORDER_TOPIC_CONFIG` if absent."
)
KEY = OpenApiParameter("key", OpenApiTypes.STR, required=True)


class NameServerKeys(ClusterResource):
    actions = {"put": PUT_ACTION, "delete": DELETE_ACTION}

    @extend_schema(parameters=[NAMESPACE], responses=KeyValueListSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """Keys of a namespace with the value of each name server. `ETag` identifies the state."""
        answer = self.cluster.ask(name_server_keys, self.namespace())
        rows = seen_rows(request.user, self.cluster, answer.value)
        body = KeyValueListSerializer(
            {
                "namespace": answer.value.namespace,
                "servers": answer.value.servers,
                "items": rows,
                "unseen": len(answer.value.rows) - len(rows),
                **told_with(answer),
            }
        ).data
        return Response(body, headers={"ETag": f'"{answer.value.etag}"'})

    @extend_schema(
        parameters=[IF_MATCH, DRY_RUN],
        request=KeyValueFields,
        responses=outcomes_or_dry_run(),
    )
    @needs(Need.ADMIN)
    def put(self, request: Request, cluster: str) -> Response:
        """Set a key on all name servers."""
        fields = KeyValueFields(data=request.data)
        fields.is_valid(raise_exception=True)
        given = fields.validated_data
        return self.change(given["namespace"], given["key"], given["value"])

    @extend_schema(
        parameters=[NAMESPACE, KEY, IF_MATCH, DRY_RUN],
        responses=outcomes_or_dry_run(),
    )
    @needs(Need.ADMIN)
    def delete(self, request: Request, cluster: str) -> Response:
        """Delete a key on all name servers."""
        key = request.query_params.get("key", "")
        if not 0 < len(key) <= KEY_CHARS_MAX:
            raise ValidationError({"key": [_("This parameter is required.")]})
        return self.change(self.namespace(), key, None)

    def namespace(self) -> str:
        given = str(self.request.query_params.get("namespace") or ORDER_NAMESPACE)
        if len(given) > NAMESPACE_CHARS_MAX:
            raise ValidationError({"namespace": [f"At most {NAMESPACE_CHARS_MAX} characters."]})
        return given

    def change(self, namespace: str, key: str, value: str | None) -> Response:
        request = self.request
        state = self.cluster.ask(name_server_keys, namespace).value
        etag = expected_etag(request)
        if read_flag(request, "dry_run"):
            check_unchanged(etag, state.etag)
            return Response(dry_run_body(key, differences(state, key, value)))
        return self.changed(key, changed(request, self.cluster, state, key, value, etag))

"""Page and REST resource of the account that signs the console's requests to a cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.flags import read_flag
from console.api.serializers import BodySerializer, OutcomeSerializer
from console.api.views import IF_MATCH, ClusterResource, expected_etag, tagged
from console.audit.recording import audited
from console.frame.access import Need, needs
from console.frame.confirmations import Confirmation
from console.frame.forms import TablerForm
from console.frame.pages import ClusterPage
from console.gateway import Cluster, Credentials, GatewayError, NotAllowedNow, NotFound
from console.gateway.brokers.credentials import try_credentials
from console.gateway.changes import BrokerOutcome, check_unchanged
from console.services.clusters.credentials import Signer, remove, save, signer_of, version
from console.services.clusters.models import ACCESS_KEY_CHARS_MAX

SECRET_CHARS_MAX = 4_096
SAVE = "cluster.credentials.save"
REMOVE = "cluster.credentials.remove"
FORCE = OpenApiParameter(
    "force",
    OpenApiTypes.BOOL,
    description="Save although the name server or a broker refuses the credentials.",
)


class CredentialsForm(TablerForm):
    """Keys of an account; a saved secret is never shown again."""

    access_key = forms.CharField(
        label=gettext_lazy("Access key"),
        max_length=ACCESS_KEY_CHARS_MAX,
        help_text=gettext_lazy("The account in plain_acl.yml, or the name of the user in ACL 2.0."),
    )
    secret_key = forms.CharField(
        label=gettext_lazy("Secret key"),
        max_length=SECRET_CHARS_MAX,
        strip=False,
        widget=forms.PasswordInput,
        help_text=gettext_lazy("The password of the user in ACL 2.0. Stored encrypted."),
    )
    security_token = forms.CharField(
        label=gettext_lazy("Security token"),
        max_length=SECRET_CHARS_MAX,
        strip=False,
        required=False,
        widget=forms.PasswordInput,
        help_text=gettext_lazy("For temporary credentials only."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in self.fields:
            kind = "off" if name == "access_key" else "new-password"
            self.fields[name].widget.attrs |= {"autocomplete": kind, "spellcheck": "false"}


def change(
    request: HttpRequest | Request,
    cluster: Cluster,
    credentials: Credentials,
    *,
    force: bool,
    expected: str | None = None,
) -> Sequence[BrokerOutcome]:
    """Try the credentials and save them; return one outcome of the trial per broker.

    Raises the error of the trial, and NotAllowedNow when a broker fails, unless `force` is True;
    PreconditionFailed when the signing account has another version than `expected`.
    """
    check_unchanged(expected, version(cluster))
    audit_fields: dict[str, Any] = {"cluster": cluster.name, "target": credentials.access_key}
    with audited(request, SAVE, before=_before(cluster), **audit_fields) as entry:
        check_editable(cluster)
        outcomes = trial(cluster, credentials, force=force)
        save(cluster, credentials, request.user, expected)
        entry.after = {"user": credentials.access_key, "outcomes": outcomes}
    return outcomes


def trial(cluster: Cluster, credentials: Credentials, *, force: bool) -> Sequence[BrokerOutcome]:
    try:
        outcomes = cluster.do(try_credentials, credentials)
    except GatewayError:
        if force:
            return ()
        raise
    failed = [each for each in outcomes if each.error is not None]
    if failed and not force:
        raise NotAllowedNow(
            _("Nothing was saved: %(broker)s answered: %(error)s")
            % {"broker": failed[0].broker, "error": failed[0].error},
            hint=_("Correct the keys, or save them although a broker fails."),
        )
    return outcomes


def delete(request: HttpRequest | Request, cluster: Cluster, expected: str | None = None) -> bool:
    """Remove the saved credentials of the version `expected`; return False when there were none."""
    check_unchanged(expected, version(cluster))
    with audited(request, REMOVE, cluster=cluster.name, before=_before(cluster)):
        check_editable(cluster)
        return remove(cluster, expected)


def check_editable(cluster: Cluster) -> None:
    """Raise NotAllowedNow for credentials of the environment."""
    if cluster.signing.fixed is not None:
        raise NotAllowedNow(
            _("The file named in CONSOLE_CLUSTER_CREDENTIALS has the keys of this cluster."),
            hint=_("Change the file, and restart the console."),
        )


def _before(cluster: Cluster) -> dict[str, str] | None:
    signer = signer_of(cluster)
    return None if signer is None else {"user": signer.access_key}


@needs(Need.ADMIN)
class CredentialsPage(ClusterPage):
    """The account that signs, and the form that changes the account."""

    template = "clusters/credentials.html"
    actions = {"post": SAVE}

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        return self.form(CredentialsForm())

    def post(self, request: HttpRequest, cluster: str) -> HttpResponse:
        if "remove" in request.POST:
            return self.form(CredentialsForm(), confirmation=of_removal())
        if "removed" in request.POST:
            delete(request, self.cluster)
            messages.success(request, _("The credentials are removed. Requests are not signed."))
            return redirect("clusters:credentials", cluster)
        form = CredentialsForm(request.POST)
        if not form.is_valid():
            return self.form(form, status=422)
        try:
            outcomes = change(
                request,
                self.cluster,
                Credentials(**form.cleaned_data),
                force="force" in request.POST,
            )
        except GatewayError as refused:
            form.add_error(None, str(refused.detail))
            return self.form(form, status=422, offers_force=True)
        tried = sum(outcome.error is None for outcome in outcomes)
        messages.success(request, _("The credentials are saved. %d brokers accepted them.") % tried)
        return redirect("clusters:credentials", cluster)

    def form(self, form: CredentialsForm, *, status: int = 200, **context: Any) -> HttpResponse:
        return self.show(
            title=_("Credentials"),
            status=status,
            form=form,
            signer=signer_of(self.cluster),
            **context,
        )


def of_removal() -> Confirmation:
    """Ask before the credentials are removed."""
    return Confirmation(
        question=_("Remove the credentials?"),
        button=_("Remove credentials"),
        name="removed",
        consequences=(
            _(
                "Without the keys, a cluster with access control refuses the console. The secret "
                "key cannot be read again."
            ),
        ),
    )


class SignerSerializer(serializers.Serializer[Any]):
    """The account that signs the console's requests; secrets are never returned."""

    access_key = serializers.CharField()
    from_environment = serializers.BooleanField(
        help_text="True: a file of CONSOLE_CLUSTER_CREDENTIALS has the keys."
    )
    is_readable = serializers.BooleanField(
        help_text="False: SECRET_KEY has changed, the keys cannot be decrypted, and requests are "
        "not signed."
    )
    has_token = serializers.BooleanField(help_text="A security token is saved.")
    changed_ms = serializers.IntegerField(allow_null=True)
    changed_by = serializers.CharField()


class CredentialsSerializer(serializers.Serializer[Any]):
    signer = SignerSerializer(allow_null=True, help_text="null: requests are not signed.")


class CredentialsPutSerializer(BodySerializer):
    access_key = serializers.CharField(max_length=ACCESS_KEY_CHARS_MAX)
    secret_key = serializers.CharField(
        max_length=SECRET_CHARS_MAX, trim_whitespace=False, write_only=True
    )
    security_token = serializers.CharField(
        max_length=SECRET_CHARS_MAX,
        trim_whitespace=False,
        required=False,
        allow_blank=True,
        default="",
        write_only=True,
    )


class CredentialsSavedSerializer(CredentialsSerializer):
    outcomes = OutcomeSerializer(many=True, help_text="The trial of the credentials, by broker.")


@needs(Need.ADMIN)
class CredentialsResource(ClusterResource):
    actions = {"put": SAVE, "delete": REMOVE}

    @extend_schema(responses=CredentialsSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """The account that signs the console's requests to the cluster."""
        return tagged({"signer": _body(signer_of(self.cluster))}, version(self.cluster))

    @extend_schema(
        parameters=[IF_MATCH, FORCE],
        request=CredentialsPutSerializer,
        responses=CredentialsSavedSerializer,
    )
    def put(self, request: Request, cluster: str) -> Response:
        """Sign the console's requests with these keys, after a trial on all brokers.

        409 when a broker refuses the keys or does not answer; nothing is saved then.
        """
        form = CredentialsPutSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        keys = Credentials(**form.validated_data)
        force, expected = read_flag(request, "force"), expected_etag(request)
        outcomes = change(request, self.cluster, keys, force=force, expected=expected)
        lines = [asdict(outcome) for outcome in outcomes]
        body = {"signer": _body(signer_of(self.cluster)), "outcomes": lines}
        return tagged(body, version(self.cluster))

    @extend_schema(parameters=[IF_MATCH], responses={204: None})
    def delete(self, request: Request, cluster: str) -> Response:
        """Remove the keys: requests are no longer signed."""
        if not delete(request, self.cluster, expected_etag(request)):
            raise NotFound(_("No credentials are saved for this cluster."))
        return Response(status=204)


def _body(signer: Signer | None) -> Mapping[str, Any] | None:
    return None if signer is None else SignerSerializer(signer).data

"""Saved views: save a console page for the user or the team, list and remove saved views."""

from typing import Any, Final
from urllib.parse import urlsplit

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import Resolver404, get_script_prefix, resolve
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.serializers import BodySerializer
from console.api.views import ClusterResource
from console.audit.recording import audited
from console.frame.access import Need, may, needs
from console.frame.confirmations import ASK, Confirmation
from console.frame.forms import TablerForm
from console.frame.pages import ClusterPage
from console.frame.permissions import Target
from console.gateway import NotAllowedNow, NotFound
from console.services.search.models import (
    ADDRESS_CHARS_MAX,
    NAME_CHARS_MAX,
    SAVED_VIEWS_MAX,
    SavedView,
)

#: Maximum length of the number of a view, digits.
NUMBER_CHARS_MAX: Final = 18


def visible_to(user: Any, cluster: str) -> QuerySet[SavedView]:
    """Saved views of a cluster owned by the user or shared by other users."""
    mine_or_shared = Q(owner=user) | Q(is_shared=True)
    return SavedView.objects.filter(mine_or_shared, cluster=cluster).select_related("owner")


def inner_address(text: str, cluster: str) -> str:
    """The address relative to the base URL; raises ValidationError for addresses outside."""
    parts = urlsplit(text.strip())
    prefix = get_script_prefix()
    if parts.scheme or parts.netloc or not parts.path.startswith(prefix) or "\\" in text:
        raise ValidationError(_("Not a page of this console."))
    path = parts.path.removeprefix(prefix)
    try:
        match = resolve(f"/{path}")
    except Resolver404 as fault:
        raise ValidationError(_("Not a page of this console.")) from fault
    if match.kwargs.get("cluster") != cluster or path.startswith("api/"):
        raise ValidationError(_("Not a page of this cluster."))
    return f"{path}?{parts.query}" if parts.query else path


def save_view(user: Any, cluster: str, name: str, address: str, *, is_shared: bool) -> SavedView:
    """Save a view, replacing a view of the same name. Raises NotAllowedNow beyond SAVED_VIEWS_MAX,
    and for a shared view of a user without write permission."""
    if is_shared and not may(user, Need.WRITE, Target("search", cluster)):
        raise NotAllowedNow(gettext_lazy("Only operators can share a view with the team."))
    mine = SavedView.objects.filter(owner=user)
    if mine.count() >= SAVED_VIEWS_MAX and not mine.filter(cluster=cluster, name=name).exists():
        raise NotAllowedNow(
            gettext_lazy("Limit of saved views reached; remove a saved view first.")
        )
    saved, _is_new = SavedView.objects.update_or_create(
        owner=user,
        cluster=cluster,
        name=name,
        defaults={"address": address, "is_shared": is_shared},
    )
    return saved


def removable(user: Any, cluster: str, pk: int) -> SavedView:
    """A view the user may remove: own views, and for administrators all shared views."""
    views = visible_to(user, cluster)
    if not may(user, Need.ADMIN, Target("search", cluster)):
        views = views.filter(owner=user)
    found = views.filter(pk=pk).first()
    if found is None:
        raise NotFound(gettext_lazy("Saved view not found among your views."))
    return found


class SaveForm(TablerForm):
    """Name and visibility of a view."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=NAME_CHARS_MAX)
    address = forms.CharField(label=gettext_lazy("Address"), max_length=ADDRESS_CHARS_MAX)
    is_shared = forms.BooleanField(label=gettext_lazy("Share with the team"), required=False)

    def __init__(self, *args: Any, cluster: str, may_share: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.cluster = cluster
        if not may_share:
            del self.fields["is_shared"]

    def clean_address(self) -> str:
        return inner_address(self.cleaned_data["address"], self.cluster)


@needs(Need.READ)
class SavedPage(ClusterPage):
    """List of saved views; `?address=` fills the form for a new view."""

    template = "search/saved.html"
    actions = {"post": "view.save"}

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        address = request.GET.get("address", "")[:ADDRESS_CHARS_MAX]
        form = self.save_form(initial={"address": address})
        return self.form(form, confirmation=self.confirmation(request))

    def confirmation(self, request: HttpRequest) -> Confirmation | None:
        """Return the question of the address."""
        if request.GET.get(ASK) != "remove":
            return None
        view = removable(request.user, self.cluster.name, _number(request.GET.get("view", "")))
        shared = _("The team loses the view. Saved by %(user)s.") % {"user": view.owner}
        return Confirmation(
            question=_("Remove the view “%(name)s”?") % {"name": view.name},
            button=_("Remove"),
            name="remove",
            value=str(view.pk),
            consequences=(shared,) if view.is_shared else (),
        )

    def post(self, request: HttpRequest, cluster: str) -> HttpResponse:
        if "remove" in request.POST:
            return self.remove(request, request.POST["remove"])
        form = self.save_form(request.POST)
        if not form.is_valid():
            return self.form(form, status=422)
        fields = form.cleaned_data
        try:
            with audited(request, "view.save", cluster=cluster, target=fields["name"]) as entry:
                save_view(
                    request.user,
                    cluster,
                    fields["name"],
                    fields["address"],
                    is_shared=fields.get("is_shared", False),
                )
                entry.after = fields
        except NotAllowedNow as refused:
            form.add_error(None, str(refused.detail))
            return self.form(form, status=refused.status)
        return redirect("search:saved", cluster=cluster)

    def remove(self, request: HttpRequest, pk: str) -> HttpResponse:
        view = removable(request.user, self.cluster.name, _number(pk))
        about = {"cluster": self.cluster.name, "target": view.name}
        with audited(request, "view.remove", before={"address": view.address}, **about):
            view.delete()
        return redirect("search:saved", cluster=self.cluster.name)

    def save_form(self, *args: Any, **kwargs: Any) -> SaveForm:
        may_share = may(self.request.user, Need.WRITE, Target("search", self.cluster.name))
        return SaveForm(*args, cluster=self.cluster.name, may_share=may_share, **kwargs)

    def form(self, form: SaveForm, status: int = 200, **more: Any) -> HttpResponse:
        return self.show(
            title=_("Saved views"),
            form=form,
            views=visible_to(self.request.user, self.cluster.name),
            prefix=get_script_prefix(),
            status=status,
            **more,
        )


def _number(text: str) -> int:
    """Return the number of a view in a request; 0, which no view has, for another text."""
    return int(text) if text.isdecimal() and len(text) <= NUMBER_CHARS_MAX else 0


class SavedViewSerializer(serializers.Serializer[Any]):
    """A saved view."""

    id = serializers.IntegerField(source="pk")
    name = serializers.CharField()
    address = serializers.CharField(help_text="Path and query relative to the console's base URL.")
    owner = serializers.CharField(source="owner.username")
    is_shared = serializers.BooleanField()
    saved_at = serializers.DateTimeField()


class SavedViewListSerializer(serializers.Serializer[Any]):
    items = SavedViewSerializer(many=True)


class SaveSerializer(BodySerializer):
    """A view to save: name and address of a console page."""

    name = serializers.CharField(max_length=NAME_CHARS_MAX)
    address = serializers.CharField(max_length=ADDRESS_CHARS_MAX)
    is_shared = serializers.BooleanField(default=False)


@needs(Need.READ)
class SavedViews(ClusterResource):
    actions = {"post": "view.save"}

    @extend_schema(responses=SavedViewListSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """Your saved views of the cluster, and views shared with the team."""
        views = visible_to(request.user, cluster)
        return Response({"items": SavedViewSerializer(views, many=True).data})

    @extend_schema(request=SaveSerializer, responses={201: SavedViewSerializer})
    def post(self, request: Request, cluster: str) -> Response:
        """Save a view, or replace your view of that name."""
        serializer = SaveSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        fields = serializer.validated_data
        try:
            address = inner_address(fields["address"], cluster)
        except ValidationError as wrong:
            raise exceptions.ValidationError({"address": wrong.messages}) from wrong
        with audited(request, "view.save", cluster=cluster, target=fields["name"]) as entry:
            view = save_view(
                request.user, cluster, fields["name"], address, is_shared=fields["is_shared"]
            )
            entry.after = dict(fields)
        return Response(SavedViewSerializer(view).data, status.HTTP_201_CREATED)


@needs(Need.READ)
class SavedViewOne(ClusterResource):
    actions = {"delete": "view.remove"}

    @extend_schema(responses={204: None})
    def delete(self, request: Request, cluster: str, pk: int) -> Response:
        """Remove one of your views; administrators can remove all shared views."""
        view = removable(request.user, cluster, pk)
        about = {"cluster": cluster, "target": view.name}
        with audited(request, "view.remove", before={"address": view.address}, **about):
            view.delete()
        return Response(status=status.HTTP_204_NO_CONTENT)

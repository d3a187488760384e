"""What topics and groups share besides their own settings: protection, undo, acting on many.

An area gives its `kind` and how one of its things is deleted or changed; the classes here hold the
rights, the audit rows, the checks and the shape of the answers.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.views import ClusterResource
from console.audit.recording import audited
from console.frame.access import Need, needs
from console.frame.outcomes import tell_outcomes
from console.frame.pages import ClusterPage, Crumb
from console.gateway import Cluster, GatewayError
from console.gateway.changes import BrokerOutcome, FieldChange
from console.resources import bulk, history
from console.resources.models import Kind
from console.resources.protection import (
    NeedsName,
    Protected,
    check_deletable,
    is_protected,
    protect,
    protected,
    unprotect,
)


class ProtectionSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    protected = serializers.BooleanField()


class ProtectionResource(ClusterResource):
    """The mark that keeps a thing from being deleted."""

    kind: ClassVar[Kind]

    @extend_schema(responses=ProtectionSerializer)
    def get(self, request: Request, cluster: str, name: str) -> Response:
        """Whether it is protected."""
        return self.told(cluster, name)

    @extend_schema(request=None, responses=ProtectionSerializer)
    @needs(Need.ADMIN)
    def put(self, request: Request, cluster: str, name: str) -> Response:
        """Protect it: nobody can delete it from here until the mark is taken away."""
        set_protection(request, cluster, self.kind, name, on=True)
        return self.told(cluster, name)

    @extend_schema(responses=ProtectionSerializer)
    @needs(Need.ADMIN)
    def delete(self, request: Request, cluster: str, name: str) -> Response:
        """Take the mark away."""
        set_protection(request, cluster, self.kind, name, on=False)
        return self.told(cluster, name)

    def told(self, cluster: str, name: str) -> Response:
        return Response({"name": name, "protected": is_protected(cluster, self.kind, name)})


def set_protection(
    request: HttpRequest | Request, cluster: str, kind: Kind, name: str, *, on: bool
) -> None:
    before = {"protected": is_protected(cluster, kind, name)}
    action = f"{kind.value}.{'protect' if on else 'unprotect'}"
    with audited(request, action, cluster=cluster, target=name, before=before) as entry:
        if on:
            protect(cluster, kind, name, request.user.get_username())
        else:
            unprotect(cluster, kind, name)
        entry.after = {"protected": on}


@needs(Need.ADMIN)
class ProtectPage(ClusterPage):
    """Puts the mark on or takes it away, and goes back to the thing's page."""

    kind: ClassVar[Kind]

    def post(self, request: HttpRequest, cluster: str, name: str) -> HttpResponse:
        on = request.POST.get("protected") == "on"
        set_protection(request, cluster, self.kind, name, on=on)
        text = _("“%s” is protected.") if on else _("“%s” is no longer protected.")
        messages.success(request, text % name)
        return redirect(f"{self.kind.value}s:detail", cluster, name)


@needs(Need.WRITE)
class UndoPage(ClusterPage):
    """Gives brokers the values from before a change, unless somebody changed them since."""

    kind: ClassVar[Kind]

    @abstractmethod
    def present(self, name: str) -> dict[tuple[str, str], Any]:
        """The value of each broker and setting as it is now."""

    @abstractmethod
    def restore(self, name: str, lines: Sequence[FieldChange]) -> Sequence[BrokerOutcome]:
        """Give the brokers the values from before."""

    def post(self, request: HttpRequest, cluster: str, name: str, number: int) -> HttpResponse:
        change = history.undoable(cluster, self.kind, name, number)
        lines = history.lines_of(change)
        back = [FieldChange(one.broker, one.field, one.after, one.before) for one in lines]
        act: dict[str, Any] = {"cluster": cluster, "target": name, "before": change.lines}
        with audited(request, f"{self.kind.value}.undo", **act) as entry:
            history.check_still_there(change, self.present(name))
            outcomes = self.restore(name, lines)
            entry.after = {f"{one.broker} {one.field}": one.after for one in back}
            entry.outcomes(outcomes)
        if all(outcome.error is None for outcome in outcomes):
            history.mark_undone(change, request.user)
        history.keep(request.user, cluster, self.kind, name, back, outcomes)
        tell_outcomes(request, outcomes, _("The change of “%s” is undone.") % name)
        return self.back(name)

    def back(self, name: str) -> HttpResponse:
        """Where the person goes afterwards."""
        return redirect(f"{self.kind.value}s:detail", self.cluster.name, name)


class Deleter:
    """How things of one kind are deleted, several at a time."""

    kind: ClassVar[Kind]
    cluster: Cluster

    @abstractmethod
    def clients(self, name: str) -> int:
        """How many clients are connected that a deletion would hit; NotThere without the thing."""

    @abstractmethod
    def remove(self, name: str) -> Sequence[BrokerOutcome]:
        """Delete one; raises a GatewayError."""

    def would(self, names: Sequence[str]) -> list[bulk.ItemResult]:
        """What would become of each; nothing is done."""
        marked = protected(self.cluster.name, self.kind, names)
        return [self._would(name, is_marked=name in marked) for name in dict.fromkeys(names)]

    def _would(self, name: str, *, is_marked: bool) -> bulk.ItemResult:
        if is_marked:
            return bulk.ItemResult(name, "failed", str(_("protected")), Protected.kind)
        try:
            clients = self.clients(name)
        except GatewayError as trouble:
            return bulk.ItemResult(name, "failed", str(trouble.detail), trouble.kind)
        text = _("%d clients are connected") % clients if clients else None
        return bulk.ItemResult(name, "would", text, NeedsName.kind if clients else None)

    def delete_all(
        self, request: HttpRequest | Request, names: Sequence[str], *, confirmed: bool
    ) -> list[bulk.ItemResult]:
        """Delete each that may be; those with clients only when that was confirmed."""

        def one(name: str) -> Sequence[BrokerOutcome]:
            check_deletable(self.cluster.name, self.kind, name)
            if not confirmed and (clients := self.clients(name)):
                raise NeedsName(_("%d clients are connected.") % clients)
            return self.remove(name)

        action = f"{self.kind.value}.delete-many"
        target = ", ".join(dict.fromkeys(names))
        with audited(request, action, cluster=self.cluster.name, target=target) as entry:
            results = bulk.each(names, one)
            entry.outcomes(results)
        return results


@needs(Need.ADMIN)
class BulkDeleteResource(Deleter, ClusterResource):
    """Deletes several things, with a result for each."""

    @extend_schema(
        request=bulk.DeleteNamesSerializer,
        responses={200: bulk.BulkSerializer, 207: bulk.BulkSerializer},
    )
    def post(self, request: Request, cluster: str) -> Response:
        """Delete several; protected ones and those with clients are refused, each with a reason."""
        form = bulk.DeleteNamesSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        given = form.validated_data
        names = given["names"]
        if given["dry_run"]:
            results = self.would(names)
            return Response(bulk.body(results))
        confirmed = given.get("confirm") == len(set(names))
        results = self.delete_all(request, names, confirmed=confirmed)
        return Response(bulk.body(results), bulk.status(results))


@needs(Need.ADMIN)
class BulkDeletePage(Deleter, ClusterPage):
    """Two steps: what would become of each, with their number to be typed, and then the results."""

    template = "bulk/delete.html"

    def post(self, request: HttpRequest, cluster: str) -> HttpResponse:
        names = bulk.read_names(request.POST.getlist("names"))
        if not names:
            messages.warning(request, _("Nothing was chosen."))
            return redirect(f"{self.kind.value}s:list", cluster)
        typed = request.POST.get("typed_count", "")
        if "delete" in request.POST and typed == str(len(names)):
            results = self.delete_all(request, names, confirmed=True)
            return self.page(results, is_done=True)
        wrong = "delete" in request.POST
        return self.page(self.would(names), wrong=wrong, status=422 if wrong else 200)

    def page(
        self,
        results: Sequence[bulk.ItemResult],
        *,
        is_done: bool = False,
        wrong: bool = False,
        status: int = 200,
    ) -> HttpResponse:
        title = _("Delete several")
        back = reverse(f"{self.kind.value}s:list", args=[self.cluster.name])
        return self.show(
            title=title,
            crumbs=[Crumb(str(self.kind.label), back), Crumb(title)],
            status=status,
            results=results,
            told=bulk.told(results),
            is_done=is_done,
            wrong=wrong,
            back=back,
            detail=f"{self.kind.value}s:detail",
        )

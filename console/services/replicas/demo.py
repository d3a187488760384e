"""The page of the demo that kills a master, so that people can see a failover.

Outside `manage.py demo --replicas N` the page answers 404.
"""

from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from console.audit.recording import audited
from console.frame.access import Need, needs
from console.frame.pages import ClusterPage, Crumb
from console.gateway import NotAllowedNow
from console.gateway.replicas.listing import timed_replica_sets
from console.services.replicas.demo_switch import Switch, switch_of
from console.services.replicas.views import find_set

ACTION: Final = "replica.kill"


@needs(Need.ADMIN)
class KillPage(ClusterPage):
    """What a kill of the master shows, and the kill."""

    template = "replicas/kill.html"
    actions = {"post": ACTION}

    def get(self, request: HttpRequest, cluster: str, broker: str) -> HttpResponse:
        self.switch()
        answer = self.cluster.ask(timed_replica_sets)
        found = find_set(answer, broker)
        here = reverse("replicas:set", args=[cluster, broker])
        crumbs = [
            Crumb(_("Replicas"), reverse("replicas:list", args=[cluster])),
            Crumb(broker, here),
            Crumb(_("Kill master")),
        ]
        return self.show(
            title=_("Kill master"), crumbs=crumbs, answer=answer, found=found, back=here
        )

    def post(self, request: HttpRequest, cluster: str, broker: str) -> HttpResponse:
        switch = self.switch()
        found = find_set(self.cluster.ask(timed_replica_sets), broker)
        master = found.master
        before: dict[str, Any] = {"epoch": found.master_epoch}
        with audited(request, ACTION, cluster=cluster, target=broker, before=before) as entry:
            if master is None:
                raise NotAllowedNow(_("The replica set has no master."))
            entry.after = {"killed": master.addr, "program": switch.kill(master.addr)}
        messages.success(
            request,
            _("The process of the master %s was killed (kill -9). It starts again in 10 seconds.")
            % master.addr,
        )
        return redirect("replicas:set", cluster, broker)

    def switch(self) -> Switch:
        found = switch_of(self.cluster)
        if found is None:
            raise Http404(_("Only the demo kills masters."))
        return found

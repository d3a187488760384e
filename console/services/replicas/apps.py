"""The area `replicas`, reached by the tabs of the cluster's pages."""

from django.utils.translation import gettext_lazy as _

from console.frame.areas import AreaConfig


class ReplicasConfig(AreaConfig):
    name = "console.services.replicas"
    label = "replicas"
    title = _("Replicas")
    icon = "server"
    name_arguments = ("broker",)
    parent = "clusters"
    in_navigation = False

    def ready(self) -> None:
        from console.services.history.sampler import sampled
        from console.services.replicas.watching import observe_sample

        sampled.connect(observe_sample, dispatch_uid="replicas")

"""The page that gives brokers the values from before a change."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from console.audit.recording import audited
from console.frame.access import Need, needs
from console.frame.outcomes import tell_outcomes
from console.frame.pages import ClusterPage
from console.gateway.changes import BrokerOutcome, FieldChange
from console.resources import history
from console.resources.models import Kind


@needs(Need.WRITE)
class UndoPage(ClusterPage):
    """Restores the values from before a change, unless somebody changed them since."""

    kind: ClassVar[Kind]

    @abstractmethod
    def present(self, name: str) -> dict[tuple[str, str], Any]:
        """The present value of each (broker, setting)."""

    @abstractmethod
    def restore(self, name: str, lines: Sequence[FieldChange]) -> Sequence[BrokerOutcome]:
        """Give the brokers the values from before."""

    @abstractmethod
    def back(self, name: str) -> HttpResponse:
        """A redirect to the page that the user came from."""

    def post(self, request: HttpRequest, cluster: str, name: str, number: int) -> HttpResponse:
        change = history.undoable(cluster, self.kind, name, number)
        lines = history.lines_of(change)
        reverted = [FieldChange(one.broker, one.field, one.after, one.before) for one in lines]
        act: dict[str, Any] = {"cluster": cluster, "target": name, "before": change.lines}
        with audited(request, f"{self.kind.value}.undo", **act) as entry:
            history.check_still_there(change, self.present(name))
            outcomes = self.restore(name, lines)
            entry.after = {f"{one.broker} {one.field}": one.after for one in reverted}
            entry.outcomes(outcomes)
        if all(outcome.error is None for outcome in outcomes):
            history.mark_undone(change, request.user)
        history.keep(request.user, cluster, self.kind, name, reverted, outcomes)
        tell_outcomes(request, outcomes, _("The change of “%s” is undone.") % name)
        return self.back(name)

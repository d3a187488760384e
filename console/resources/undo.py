"""The page that undoes a change of settings."""

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
    """Restores the values from before a change; refused when a value was changed since."""

    kind: ClassVar[Kind]

    @abstractmethod
    def present(self, name: str) -> dict[tuple[str, str], Any]:
        """The present value by (broker, setting)."""

    @abstractmethod
    def restore(self, name: str, lines: Sequence[FieldChange]) -> Sequence[BrokerOutcome]:
        """Write the previous values to the brokers."""

    @abstractmethod
    def back(self, name: str) -> HttpResponse:
        """A redirect to the page of the resource."""

    def post(self, request: HttpRequest, cluster: str, name: str, number: int) -> HttpResponse:
        change = history.undoable(cluster, self.kind, name, number)
        lines = history.lines_of(change)
        reverted = [FieldChange(line.broker, line.field, line.after, line.before) for line in lines]
        context: dict[str, Any] = {"cluster": cluster, "target": name, "before": change.lines}
        with audited(request, f"{self.kind.value}.undo", **context) as entry:
            history.check_still_there(change, self.present(name))
            outcomes = self.restore(name, lines)
            entry.after = {f"{line.broker} {line.field}": line.after for line in reverted}
            entry.outcomes(outcomes)
        if all(outcome.error is None for outcome in outcomes):
            history.mark_undone(change, request.user)
        history.keep(request.user, cluster, self.kind, name, reverted, outcomes)
        tell_outcomes(request, outcomes, _("The change of “%s” is undone.") % name)
        return self.back(name)

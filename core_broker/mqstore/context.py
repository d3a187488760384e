"""The state shared by the checks of one verification."""

from dataclasses import dataclass, field

from core_broker.mqstore.log_view import Damage
from core_broker.mqstore.report import Report


@dataclass(slots=True)
class VerificationContext:
    """The state context by the checks of one verification."""

    report: Report
    min_physical: int
    #: Physical offset from which records may lack units and index items: a running broker holds the
    #: units in memory, or the next start adds the units. None after an orderly stop.
    lag_from: int | None = None
    is_in_use: bool = False
    has_ext: bool = False
    damage: Damage = field(default_factory=Damage)
    #: End of the log; 0 until the walk has ended.
    log_end: int = 0

    def may_lag(self, offset: int) -> bool:
        """Return True when a record at `offset` may lack units and index items."""
        return self.lag_from is not None and offset >= self.lag_from

    def may_dangle(self, offset: int) -> bool:
        """Return True when a unit or item may point to an offset without a record."""
        return (
            offset < self.min_physical
            or offset in self.damage
            or (self.is_in_use and bool(self.log_end) and offset >= self.log_end)
        )

"""Samples of one time become frames, one for each metric."""

import logging
from collections.abc import Iterable, Mapping

import numpy as np

from console.services.history.blocks import LEVEL_OF_FRAMES, pack
from console.services.history.metrics import METRICS, SCOPES, Scope
from console.services.history.store import NAMES_MAX, STORE_ERRORS, Store

log = logging.getLogger(__name__)

#: Values of each metric by name. A name without a value, and None, are gaps.
Samples = Mapping[int, Mapping[str, float | None]]


class Writer:
    """Appends samples to the store of a cluster; keeps the slots of all names in memory."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._slots: dict[Scope, dict[str, int]] = {scope: {} for scope in SCOPES}
        #: Names without a slot, because NAMES_MAX names of their scope have one.
        self.left_out = 0
        self.reload()

    def reload(self) -> None:
        """Read the slots again, after names were removed."""
        scopes = {number: scope for scope, number in SCOPES.items()}
        for slots in self._slots.values():
            slots.clear()
        for number, slot, name in self._store.slots():
            self._slots[scopes[number]][name] = slot

    def append(self, at_ms: int, samples: Samples, paces: Mapping[Scope, int]) -> None:
        """Store the samples of a time, and the interval between two samples of a name by scope.

        A second sample of the same time is dropped. Raises one of STORE_ERRORS; then nothing
        is stored.
        """
        try:
            with self._store.transaction():
                self._name(at_ms, samples)
                rows = [(number, at_ms, self._frame(number, samples)) for number in samples]
                self._store.add_frames(rows)
                self._store.set_paces(paces)
        except STORE_ERRORS:
            self.reload()  # new slots were rolled back
            raise

    def _name(self, at_ms: int, samples: Samples) -> None:
        """Give slots to new names, the lowest free ones."""
        self.left_out = 0
        seen = {scope: self._unnamed(scope, samples) for scope in SCOPES}
        if any(seen.values()):
            self.reload()  # another process may have given slots before its lease ended
        for scope, slots in self._slots.items():
            new = [name for name in seen[scope] if name not in slots]
            free = free_slots(slots.values(), min(len(new), NAMES_MAX - len(slots)))
            self.left_out += len(new) - len(free)
            given = dict(zip(new, free, strict=False))
            slots.update(given)
            self._store.add_names(
                (SCOPES[scope], slot, name, at_ms, at_ms) for name, slot in given.items()
            )
        if self.left_out:
            log.warning("no history of %d names: the limit is %d", self.left_out, NAMES_MAX)

    def _unnamed(self, scope: Scope, samples: Samples) -> list[str]:
        """Return the names without a slot, each once."""
        tables = [samples[m.number] for m in METRICS if m.scope == scope and m.number in samples]
        slots = self._slots[scope]
        return list(dict.fromkeys(n for table in tables for n in table if n not in slots))

    def _frame(self, number: int, samples: Samples) -> bytes:
        metric = next(metric for metric in METRICS if metric.number == number)
        slots = self._slots[metric.scope]
        values = np.full(max(slots.values(), default=-1) + 1, np.nan)
        for name, value in samples[number].items():
            if value is not None and (slot := slots.get(name)) is not None:
                values[slot] = value
        return pack(values, exact=metric.exact, level=LEVEL_OF_FRAMES)


def free_slots(used: Iterable[int], count: int) -> list[int]:
    """Return the lowest unused slots."""
    taken, free, slot = set(used), list[int](), 0
    while len(free) < count:
        if slot not in taken:
            free.append(slot)
        slot += 1
    return free

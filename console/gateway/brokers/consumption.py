"""Consumption in a broker's runtime table, without the console's own pulls."""

from collections.abc import Mapping

from console.gateway.brokers.runtime import rates, whole
from console.gateway.engine.own_reads import OwnReads
from core_broker.remoting.bodies.inventory import GANTRY_UNMEASURED_KEY

TOTAL_NOW = "msgGetTotalTodayNow"
TOTAL_MORNING = "msgGetTotalTodayMorning"
RATES = ("getTransferedTps", "getTransferredTps")
SPANS_S = (10, 60, 600)


def without_own_reads(
    table: Mapping[str, str], own: OwnReads, addr: str, now_ms: int
) -> Mapping[str, str]:
    """Return the table of an Apache broker with totals and rates less the console's own pulls.

    A Gantry broker does not count pulls of tools; its table is unchanged.
    """
    if GANTRY_UNMEASURED_KEY in table:
        return table
    changed = dict(table)
    since_start = own.since(addr, "start", table.get("bootTimestamp", ""))
    today = own.since(addr, "morning", table.get(TOTAL_MORNING, ""))
    for key, count in ((TOTAL_NOW, since_start), (TOTAL_MORNING, since_start - today)):
        value = whole(table, key)
        if value is not None:
            changed[key] = str(max(0, value - max(0, count)))
    for key in RATES:
        if averages := rates(table, key):
            parts = zip(averages, SPANS_S, strict=True)
            less = (max(0.0, value - own.rate(addr, span, now_ms)) for value, span in parts)
            changed[key] = " ".join(map(str, less))
    return changed

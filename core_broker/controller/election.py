"""The choice of a master among live brokers.

Compatible with RocketMQ 5.3.3's DefaultElectPolicy, except that offsets are compared without
Java's overflow, and that equal candidates are ordered by id.
"""

from collections.abc import Collection

from core_broker.controller.model import BrokerSet, Candidate


def choose_master(
    broker_set: BrokerSet,
    candidates: Collection[Candidate],
    preferred: int | None,
    *,
    allows_unclean: bool,
) -> int | None:
    """Return the id of the master to be, None when no candidate may become master.

    Members of the sync-state set come first; other replicas only with `allows_unclean`, because
    acknowledged messages may be missing there. A live master stays unless another broker is
    preferred. A preferred broker is elected, or nobody.
    """
    groups: list[Collection[int]] = [broker_set.sync_state_set]
    if allows_unclean:
        groups.append(broker_set.replicas)
    for members in groups:
        live = [
            candidate
            for candidate in candidates
            if candidate.broker_id in members and candidate.broker_id in broker_set.replicas
        ]
        ids = {candidate.broker_id for candidate in live}
        master = broker_set.master_id
        if master in ids and preferred in (None, master):
            return master
        if preferred is not None:
            if preferred in ids:
                return preferred
        elif live:
            return min(live, key=_rank).broker_id
    return None


def _rank(candidate: Candidate) -> tuple[int, int, int, int]:
    return -candidate.epoch, -candidate.max_offset, candidate.priority, candidate.broker_id

"""The audit list: who changed what, from where, and how it went.

    with audited(request, "topic.delete", cluster=name, target=topic, before=config) as entry:
        outcomes = self.cluster.do(delete_topic, topic)
        entry.outcomes(outcomes)          # a result per broker or item, where there are several
        entry.after = {...}

The row is there before the act, as “begun”; after it the row gets its true result, once. An
exception makes it “failed” with the reason, and goes on. Jobs say `audited_as(user, …)`. Whoever is
refused by `console.access` leaves a row too. Nothing edits or deletes a row; the oldest go by age
and number (`retention.py`). Open it outside of a transaction, or it is rolled back with the act.
"""

from console.audit.recording import Entry, audited, audited_as

__all__ = ["Entry", "audited", "audited_as"]

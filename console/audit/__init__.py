"""The audit list: who changed what, from where, and how it went.

    from console.audit.recording import audited

    with audited(request, "topic.delete", cluster=name, target=topic, before=config) as entry:
        outcomes = self.cluster.do(delete_topic, topic)
        entry.outcomes(outcomes)          # a result per broker or item, where there are several
        entry.after = {...}

The row is there before the act, as “begun”; after it the row gets its true result, once. An
exception makes it “failed” with the reason, and goes on. Jobs say `audited_as(user, …)`. A request
that `console.frame.access` refuses leaves a row too (`denials.py`). Nothing edits a row; the oldest
rows go by age and number (`retention.py`). Open `audited` outside of a transaction: a rollback of
the act would remove the row.
"""

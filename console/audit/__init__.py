"""The audit log: user, action, target, source and result of each change.

    from console.audit.recording import audited

    with audited(request, "topic.delete", cluster=name, target=topic, before=config) as entry:
        outcomes = self.cluster.do(delete_topic, topic)
        entry.outcomes(outcomes)          # optional: results per broker or item
        entry.after = {...}

The row is written before the action with the result “begun”, and completed once after the action.
An exception sets the result “failed” with the reason and propagates. Jobs use `audited_as(user,
…)`. A request denied by `console.frame.access` is recorded too (`denials.py`). No code edits a
completed row; retention removes the oldest rows by age and number (`retention.py`). Open `audited`
outside of a transaction: a rollback of the action would remove the row.
"""

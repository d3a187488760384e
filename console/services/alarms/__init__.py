"""Alarms: rules over the history and the findings, episodes, and notices to receivers.

    worker: findings evaluated  →  evaluation.py  →  episodes and deliveries (one transaction)
    worker: dispatch.py  →  sending/  →  receivers

conditions.py   a value against a threshold; what an episode does next. Pure
series.py       values of all objects of a metric, from the history
observing.py    what a rule sees of a cluster now
evaluation.py   episodes of all rules of a cluster
notices.py      notices become deliveries: the outbox
dispatch.py     claims and sends deliveries
results.py      what receivers answered, as code and values
sending/        formats of notices, signatures, HTTP and mail
receivers.py, rules.py, silences.py    changes by pages and REST requests
retention.py    old episodes and deliveries are deleted

An episode is the time during which one object meets the condition of one rule. A database
constraint allows one open episode per rule and object, and one delivery of each event per episode
and receiver: restarts and a second worker cannot repeat a notice.
"""

"""Health findings: what is wrong with a cluster, with evidence, a link and the remedy.

    gateway: snapshot, diagnoses  →  rules/  →  Report  →  stored, pages, REST resource, alarms

finding.py      values: Finding, NotChecked, Report
thresholds.py   thresholds from the settings of the console
samples.py      samples of earlier evaluations, for growth and for queues that do not move
rules/          pure rules over the evidence, by noun
evaluation.py   one shared evaluation per cluster and process, with a maximum rate
background.py   the evaluation in the worker, under a lease; tasks.py starts it
stored.py       the last report of each cluster in the database, in all languages
reports.py      the report that pages show

A finding has a stable `key`, rule and object: alarms compare the keys of two reports. A rule that
could not read its evidence reports NotChecked with the reason, and a report with a NotChecked is
never "healthy".
"""

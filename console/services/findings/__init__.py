"""Health findings: what is wrong with a cluster, with evidence, a link and the remedy.

    gateway: snapshot, diagnoses  →  rules/  →  Report  →  pages, REST resource, alarms

finding.py      values: Finding, NotChecked, Report
thresholds.py   thresholds from the settings of the console
samples.py      samples of earlier evaluations, for growth and for queues that do not move
rules/          pure rules over the evidence, by noun
evaluation.py   one shared evaluation per cluster, with a maximum rate

A finding has a stable `key`, rule and object: alarms compare the keys of two reports. A rule that
could not read its evidence reports NotChecked with the reason, and a report with a NotChecked is
never "healthy".
"""

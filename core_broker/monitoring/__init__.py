"""Monitoring of a running process: readiness, metrics and the HTTP side port.

readiness.py   named checks: may the process receive traffic
metrics.py     the registry of Prometheus metrics, with the names of RocketMQ 5
access.py      readers of metrics and internal tables: this machine, or a token
side_port.py   the HTTP server for both, and for the internal tables
"""

"""Trace analytics: DuckDB queries on the trace lake that the trace jobs write."""

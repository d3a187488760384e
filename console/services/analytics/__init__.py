"""Trace analytics: what the jobs collected in the lake, asked with DuckDB."""

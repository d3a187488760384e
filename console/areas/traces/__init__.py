"""Traces: the journey of one message, live from the cluster."""

"""The trace topic: text format, client hook, timeline of one message, tables of the lake."""

"""The trace topic: text format, client hook, timeline of a message, tables of the lake.

setup.py compiles `scan.py` (C types: `scan.pxd`), `attempts.py` and `facts.py`; without a compiler
they run as plain Python.
"""

"""The trace topic: text format, client hook, timeline of a message, tables of the lake.

setup.py compiles `scan.py`, whose C types are in `scan.pxd`; without a compiler it runs as plain
Python.
"""

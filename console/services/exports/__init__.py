"""Exports: rows as files, and the lists of the console exported as jobs."""

"""Generic pages and REST resources for configured resources, such as topics and groups.

A kind of resource provides a form, serializers and gateway functions. This package provides
protection, undo, change history, bulk operations, and secrets that are shown once.
"""

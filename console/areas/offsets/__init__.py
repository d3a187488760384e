"""Offset resets of consumer groups: preview, reset, check, undo."""

"""Definitions as code: export, compare and apply topics, groups, permissions and protection."""

"""Definitions as code: export, compare, apply topics, groups, permissions, labels, protection."""

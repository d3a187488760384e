"""Signing in and out, the password, and how the pages look to one person."""

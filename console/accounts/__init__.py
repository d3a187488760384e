"""Sign-in, users, API tokens, sessions, passwords and personal display settings."""

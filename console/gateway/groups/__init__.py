"""Questions and commands about consumer groups."""

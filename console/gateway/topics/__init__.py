"""Questions and commands about topics."""

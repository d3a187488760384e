"""Questions and commands about stored messages."""

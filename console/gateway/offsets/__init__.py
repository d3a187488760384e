"""Questions and commands about the consumer offsets of a group."""

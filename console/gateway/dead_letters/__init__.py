"""Questions and commands about dead letters."""

"""Questions about the journey of one message."""

"""Questions about messages that brokers hold back: delayed messages and half messages."""

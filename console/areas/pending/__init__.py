"""Messages that brokers hold back: delayed messages, half messages, discarded half messages."""

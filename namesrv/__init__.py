"""The name server: which broker serves which topic, and a small key-value store."""

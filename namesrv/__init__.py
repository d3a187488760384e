"""The name server: routes from topics to brokers, and a small key-value store."""

"""Messages: browse a topic, find a message by id or key, show, send, export and tail messages."""

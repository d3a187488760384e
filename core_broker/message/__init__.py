"""Messages of applications, stored messages, and their text and byte formats."""

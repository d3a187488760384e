"""Topics: list, configuration and queues; create, edit and delete pages."""

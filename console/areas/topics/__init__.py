"""Topics: what there is, how it is configured, what its queues hold; create, edit, delete."""

"""Background jobs: queue, state and history; one active job per kind and scope."""

"""Background jobs: what runs, what ran, one at a time per kind, started by people or the clock."""

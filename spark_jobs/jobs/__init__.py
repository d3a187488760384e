"""The jobs: ingest, follow, derive, compact."""

"""Exports: row files (JSON Lines, CSV, XLSX), and list exports as jobs."""

"""The live topology of a cluster as drawing and table, for pages and REST API."""

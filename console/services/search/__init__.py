"""Search over all areas, recently viewed items and saved views."""

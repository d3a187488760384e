"""Measurements of a broker from outside: `make bench`."""

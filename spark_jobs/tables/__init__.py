"""The events and tables of the trace lake as DataFrame functions. Pure: no lake, no cluster."""

"""What clients write to the trace topic: its text form, the client hook, one message's timeline."""

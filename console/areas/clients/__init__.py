"""Clients: who is connected, consumers and producers, whatever they work for."""

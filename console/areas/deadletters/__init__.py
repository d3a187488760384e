"""Dead letters: which groups have any, what failed, and sending it again with a ledger."""

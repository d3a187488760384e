"""Dead letters: groups, causes of failure, and resends recorded in a ledger."""

"""Access control: who a request comes from, and what the account may do."""

"""Questions and commands about brokers and name servers."""

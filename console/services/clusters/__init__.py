"""Clusters: the home page, the overview with live rates, brokers and name servers."""

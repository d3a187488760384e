"""Clusters: home page, overview with live rates, brokers, broker settings, name servers."""

"""The live topology of a cluster: name servers, brokers, topics and groups, and their connections.

model.py      nodes and edges
building.py   nodes and edges from the answers of the brokers; pure
measures.py   questions about rates and lags, also of single edges
live.py       the question about the complete topology
"""

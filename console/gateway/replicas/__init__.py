"""Replica sets of a cluster: brokers of one name, their controllers, and elections.

model.py        what pages and rules read
controllers.py  the controllers of a cluster, and their leader
building.py     answers of brokers and controllers become replica sets (pure)
listing.py      the questions
electing.py     the election of a master by an operator
"""

"""The history of clusters: metrics of brokers, topics and groups, sampled by the worker.

metrics.py      which metrics there are, and what is kept of each
blocks.py       compressed arrays of samples, and their aggregates. Pure
store.py        the rows of one cluster; writing.py, upkeep.py and reading.py work on them
files.py        rows in a SQLite file per cluster
postgres.py     rows in the console's PostgreSQL
places.py       which of the two has the history of a cluster
importing.py    a file goes to PostgreSQL
writing.py      names get slots, samples become frames
rows.py         arrays of the store, by table
upkeep.py       frames become hours, hours become days; retention
reading.py      a metric over a time range
samples.py      a snapshot of a cluster as samples. Pure
sampler.py      the sampler of a worker, started by tasks.py
charts.py       the charts of pages; api.py the REST resource
"""

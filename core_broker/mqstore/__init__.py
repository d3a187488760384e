"""`mqstore`: lists and verifies a store folder, and rebuilds queues and index from the commit log.

cli.py          options and exit codes of the commands
folder.py       files of a store folder, read without changes and without the lock
sizes.py        file sizes: from options, from a broker.conf, or measured
log_view.py     the commit log, and the walk over all records
listing.py      `ls`
dumping.py      `dump`
verifying.py    `verify`, with queue_check.py, index_check.py and file_checks.py
context.py      the state shared by the checks
repairing.py    `repair`
printing.py     tables for people, JSON for programs
"""

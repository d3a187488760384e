"""`mqstore`: looks into a store folder, verifies it, and rebuilds what is derived from its log.

folder.py       what lies in a folder, read without changing or locking anything
sizes.py        the sizes of its files: given, from a broker.conf, or as they are
log_view.py     its commit log, and the walk over all records
listing.py      `ls`
dumping.py      `dump`
verifying.py    `verify`; queue_check.py, index_check.py, file_checks.py are its parts
repairing.py    `repair`
printing.py     tables for people, JSON for programs
"""

"""Leases: periodic work of workers that one process of all carries out.

lease.py        the right of one process, in the database
periodic.py     a thread that works at every multiple of an interval
"""

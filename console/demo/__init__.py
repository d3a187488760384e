"""Sample traffic for `manage.py demo`: a small shop whose accounting fails now and then.

`shop` says what is sent, consumed and refused; `__main__` runs it until it is stopped.
"""

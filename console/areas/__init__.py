"""One Django app per noun that an operator works with. How to add one: `frame/areas.py`."""

"""Replica sets: roles, lag, controllers, elections, and who was master when.

watching.py   role changes that the history's sampler sees, in Django's database
causes.py     why a role changed (pure)
timeline.py   the picture of masters (pure)
elections.py  elections by operators, with audit rows
"""

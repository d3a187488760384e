"""Starts, watches and stops the processes of one Gantry on one machine: `manage.py up`.

`main` reads the options and claims the home folder, `services` lists the programs, `supervisor`
runs them in order, `child` is one running program. Nothing here imports Django or the broker, so
that a start costs no more than the programs themselves.
"""

"""`manage.py up`: starts, supervises and stops the processes of Gantry on one machine.

`main` reads the options and locks the home folder, `access` makes keys and certificates, `services`
lists the programs, `supervisor` runs the programs in order, `child` is one running program. The
launcher imports neither Django nor the broker, so that the launcher adds little to the start time.
"""

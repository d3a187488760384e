"""The command `gantry`, in a clone `manage.py`: `up` and `demo`, and the commands of Django.

`up` and `demo` start all programs without importing Django.
"""

import os
import sys
from importlib.util import find_spec

from console.project_files import COMMAND, INSTALL_CONSOLE

LAUNCHERS = ("up", "demo")
EXIT_FAILED = 1
EXIT_SETTINGS = 2
EXIT_INTERRUPTED = 130

NO_CONSOLE = """\
The libraries of the console are not installed for {python}.
Install them: {remedy}
Name server, broker and command line need no more than is installed: mqnamesrv, mqbroker, mqadmin.
"""
NO_DATABASE = """\
The database of the console cannot be used: {problem}
The home folder is {home}, {source}.
Set GANTRY_HOME to the “data folder” that “{command} up” prints, or DATABASE_URL to its database,
and run the command as the same user. “{command} up” creates the database at its first start.
"""


def main() -> int:
    if find_spec("django") is None:
        sys.stderr.write(NO_CONSOLE.format(python=sys.executable, remedy=INSTALL_CONSOLE))
        return EXIT_FAILED
    try:
        if len(sys.argv) > 1 and sys.argv[1] in LAUNCHERS:
            from console.launcher.main import main as launch

            return launch(sys.argv[2:], demo=sys.argv[1] == "demo")
        return run_command()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def run_command() -> int:
    """Run a command of Django; explain wrong settings and an absent database."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import OperationalError, ProgrammingError

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as problem:
        sys.stderr.write(f"{problem}\n")
        return EXIT_SETTINGS
    except (OperationalError, ProgrammingError) as problem:
        from django.conf import settings

        from console.frame.own_disks import is_disk_full, why_database_fails

        if is_disk_full(problem) and (full := why_database_fails()):
            sys.stderr.write(f"{full}\n")
            return EXIT_SETTINGS
        given = os.environ.get("GANTRY_HOME")
        source = "from GANTRY_HOME" if given else "the default without GANTRY_HOME"
        text = NO_DATABASE.format(
            problem=problem, home=settings.GANTRY_HOME, source=source, command=COMMAND
        )
        sys.stderr.write(text)
        return EXIT_SETTINGS
    return 0

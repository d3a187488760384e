#!/usr/bin/env python
"""The console's command line. `up` and `demo` start all programs without importing Django."""

import os
import sys

LAUNCHERS = ("up", "demo")


def main() -> int:
    if len(sys.argv) > 1 and sys.argv[1] in LAUNCHERS:
        from console.launcher.main import main as launch

        return launch(sys.argv[2:], demo=sys.argv[1] == "demo")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError:
        sys.stderr.write("Django is not installed here. Run `make up`, or .venv/bin/python.\n")
        return 1
    execute_from_command_line(sys.argv)
    return 0


if __name__ == "__main__":
    sys.exit(main())

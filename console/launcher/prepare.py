"""The set-up step: the console's tables and the first admin.

`python -m console.launcher.prepare` runs the step with Django. `up` runs the step only when
`is_needed` returns True, because loading Django takes a second.
"""

import hashlib
import importlib.metadata
import os
import sys
from pathlib import Path

from console.launcher.errors import EXIT_USAGE
from console.project_files import PROJECT_ROOT

STAMP_NAME = "run/prepared"
#: Stands while the receiver of alarms of the demo is on: a start without the demo switches it off.
RECEIVER_STAMP_NAME = "run/demo-receiver"
DATABASE_NAME = "console.sqlite3"
#: Libraries with tables of their own.
LIBRARIES = ("django", "django-axes", "django-celery-beat", "django-rest-knox")


def is_needed(home: Path) -> bool:
    """Return True when tables or admin may be missing.

    With DATABASE_URL or GANTRY_ADMIN_PASSWORD, only Django can tell, so the result is True.
    """
    if os.environ.get("DATABASE_URL") or os.environ.get("GANTRY_ADMIN_PASSWORD"):
        return True
    if (home / RECEIVER_STAMP_NAME).exists():
        return True
    stamp = home / STAMP_NAME
    if not (home / DATABASE_NAME).exists() or not stamp.exists():
        return True
    return stamp.read_text(encoding="ascii") != fingerprint()


def fingerprint() -> str:
    """Return a digest of all migrations: the project's by content, the libraries'
    by installed version.
    """
    digest = hashlib.sha256()
    for path in sorted(PROJECT_ROOT.glob("console/**/migrations/*.py")):
        digest.update(path.relative_to(PROJECT_ROOT).as_posix().encode())
        digest.update(path.read_bytes())
    for name in LIBRARIES:
        digest.update(f"{name} {importlib.metadata.version(name)}".encode())
    return digest.hexdigest()


def keep_demo_receiver(home: Path, url: str) -> None:
    """Store the receiver of a demo with its URL; without a demo, switch off that of the last start.

    A receiver with the same name in a home without a demo belongs to a user, and stays.
    """
    from console.services.alarms.demo_receiver import set_demo_receiver

    stamp = home / RECEIVER_STAMP_NAME
    if not url and not stamp.exists():
        return
    stamp.parent.mkdir(parents=True, exist_ok=True)
    if set_demo_receiver(url):
        stamp.touch()
    else:
        stamp.unlink(missing_ok=True)


def main() -> int:
    """Prepare the database of DJANGO_SETTINGS_MODULE; return 2 for wrong settings or database."""
    import django
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import CommandError, call_command
    from django.db import Error as DatabaseError

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    try:
        django.setup()
        sys.stdout.write("creates or updates the tables of the console\n")
        call_command("migrate", interactive=False, verbosity=0)
        call_command("ensure_admin")
    except (ImproperlyConfigured, CommandError) as problem:
        sys.stderr.write(f"{problem}\n")
        return EXIT_USAGE
    except DatabaseError as problem:
        from console.frame.own_disks import is_disk_full, why_database_fails

        full = is_disk_full(problem) and why_database_fails()
        text = full or f"The database cannot be used: {problem}\nSee DATABASE_URL."
        sys.stderr.write(f"{text}\n")
        return EXIT_USAGE
    from django.conf import settings

    # Executors of Spark mount this folder of the volume; a kubelet would make it for root.
    (settings.GANTRY_HOME / "lake").mkdir(parents=True, exist_ok=True)
    keep_demo_receiver(settings.GANTRY_HOME, os.environ.get("GANTRY_DEMO_RECEIVER", ""))
    stamp: Path = settings.GANTRY_HOME / STAMP_NAME
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(fingerprint(), encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`manage.py translate`: collect texts into catalogues and compile the catalogues.

Shared texts are in `console/locale`; texts of an area with a `locale` folder are in the area's
folder. After the command, fill the empty `msgstr` in each `django.po`, check entries marked fuzzy,
and run the command again. `.po` and `.mo` files are committed; a test checks completeness. The
command needs GNU gettext (`xgettext`, `msgmerge`, `msgfmt`).
"""

import re
from contextlib import chdir
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand

from console.frame.areas import areas

LOCALE = "zh_Hans"
HEADER = (
    "# Chinese texts of the console.",
    'msgid ""',
    'msgstr ""',
    '"Language: zh_Hans\\n"',
    '"MIME-Version: 1.0\\n"',
    '"Content-Type: text/plain; charset=UTF-8\\n"',
    '"Content-Transfer-Encoding: 8bit\\n"',
    '"Plural-Forms: nplurals=1; plural=0;\\n"',
)
CONSOLE = settings.BASE_DIR / "console"


def locale_roots() -> list[Path]:
    """Return the folders with a `locale` folder: the console first, then the areas."""
    own = [Path(area.path) for area in areas()]
    return [CONSOLE, *(path for path in own if (path / "locale").is_dir())]


class Command(BaseCommand):
    help = "Collect texts into every django.po, and compile every django.mo."

    def handle(self, *args: Any, **options: Any) -> None:
        roots = locale_roots()
        elsewhere = [f"{root.relative_to(CONSOLE)}/*" for root in roots[1:]]
        for root in roots:
            self.collect(root, elsewhere if root == CONSOLE else [])
        for root in roots:
            with chdir(root):
                call_command("compilemessages", locale=[LOCALE], verbosity=0)

    def collect(self, root: Path, ignored: list[str]) -> None:
        with chdir(root):
            (root / "locale").mkdir(exist_ok=True)
            call_command(
                "makemessages",
                locale=[LOCALE],
                ignore_patterns=ignored,
                no_location=True,
                no_wrap=True,
                no_obsolete=True,
                verbosity=0,
            )
        path = root / "locale" / LOCALE / "LC_MESSAGES" / "django.po"
        # gettext's header contains time and person; a constant header keeps diffs small.
        _header, _blank, texts = path.read_text(encoding="utf-8").partition("\n\n")
        texts = texts.replace('\nmsgstr[1] ""', "")  # Chinese has one form for all numbers
        path.write_text("\n".join(HEADER) + "\n\n" + texts, encoding="utf-8")
        missing = len(re.findall(r'^msgstr(\[0\])? ""\n(?!")', texts, re.MULTILINE))
        self.stdout.write(f"{path.relative_to(settings.BASE_DIR)}: {missing} not translated")

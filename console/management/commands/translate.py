"""`manage.py translate`: collect texts into catalogues and compile the catalogues.

Shared texts are in `console/locale`; texts of an area with a `locale` folder are in the area's
folder. After the command, fill the empty `msgstr` in each `django.po`, check entries marked fuzzy,
and run the command again. `.po` and `.mo` files are committed; a test checks completeness. The
command needs GNU gettext (`xgettext`, `msgmerge`, `msgfmt`). The meanings of broker settings have a
catalogue of their own, `settings.po`.
"""

import json
import re
from collections.abc import Iterable
from contextlib import chdir
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.core.management.utils import popen_wrapper

from console.frame.areas import areas
from console.services.clusters import setting_docs

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
        catalogue = setting_docs.LOCALE_DIR / LOCALE / f"LC_MESSAGES/{setting_docs.DOMAIN}.po"
        self.merge(catalogue, dict.fromkeys(setting_docs.written().values()))
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
        self.tidy(root / "locale" / LOCALE / "LC_MESSAGES" / "django.po")

    def merge(self, path: Path, texts: Iterable[str]) -> None:
        """Bring a catalogue in step with texts that are no source code."""
        entries = (f'msgid {json.dumps(text, ensure_ascii=False)}\nmsgstr ""' for text in texts)
        with NamedTemporaryFile("w", suffix=".pot", encoding="utf-8") as template:
            template.write("\n\n".join(["\n".join(HEADER), *entries]) + "\n")
            template.flush()
            merge = ["msgmerge", "--quiet", "--update", "--backup=none", "--no-wrap"]
            _output, errors, status = popen_wrapper([*merge, str(path), template.name])
        if status != 0:
            raise CommandError(errors)
        self.tidy(path)

    def tidy(self, path: Path) -> None:
        # gettext's header contains time and person; a constant header keeps diffs small.
        _header, _blank, texts = path.read_text(encoding="utf-8").partition("\n\n")
        texts = texts.replace('\nmsgstr[1] ""', "")  # Chinese has one form for all numbers
        path.write_text("\n".join(HEADER) + "\n\n" + texts, encoding="utf-8")
        missing = len(re.findall(r'^msgstr(\[0\])? ""\n(?!")', texts, re.MULTILINE))
        self.stdout.write(f"{path.relative_to(settings.BASE_DIR)}: {missing} not translated")

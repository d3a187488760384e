"""MkDocs hooks of the documentation site: pages from outside docs/, links, content policy.

    make site        builds English into build/site and Chinese into build/site/zh

Both builds load this file (mkdocs.yml, mkdocs.zh.yml). The pages of the reference are generated
from the code of this tree; pages such as CHANGELOG.md lie outside of docs/.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tools.site import links, openapi, reference, translations
from tools.site.content_policy import Extracted, extract, write

ROOT = Path(__file__).resolve().parents[2]
#: Entry of the navigation that gets one page for each tag of the OpenAPI document.
REST_SECTION = "REST API by resource"
REST_FOLDER = "reference/rest"
#: Files of the theme for a site at the root of a host of its own.
UNUSED = ("404.html", "sitemap.xml", "sitemap.xml.gz")
#: For search engines; with these links, scripts of the theme look for a site map.
ALTERNATE = re.compile(r'<link rel="alternate"[^>]*>\s*')

_generated: dict[str, str] = {}
_extracted = Extracted()


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Generate the reference, and add the pages of the REST API to the navigation."""
    _generated.clear()
    _extracted.clear()
    if config.extra["language"] == "en":
        document = openapi.document(ROOT)
        rest = openapi.pages(document)
        _generated.update(reference.pages())
        _generated.update({f"{REST_FOLDER}/{name}.md": text for name, text in rest.items()})
        for section in config.nav or ():
            for entry in next(iter(section.values())):
                if isinstance(entry, dict) and REST_SECTION in entry:
                    entry[REST_SECTION] = [f"{REST_FOLDER}/{name}.md" for name in rest]
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    if config.extra["language"] == "en":
        for path, uri in links.PROJECT_PAGES.items():
            files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
        for uri, text in _generated.items():
            files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    folder = Path(config.docs_dir).relative_to(ROOT).as_posix()
    original = ROOT / links.ENGLISH / page.file.src_uri
    if config.extra["language"] != "en" and original.exists():
        english = original.read_text(encoding="utf-8")
        markdown = translations.with_english_anchors(markdown, english)
    return links.rewritten(translations.COMMENT.sub("", markdown), page.file.src_uri, folder)


def on_page_context(
    context: dict[str, Any], *, page: Page, config: MkDocsConfig, nav: Any
) -> dict[str, Any]:
    """Let the language menu lead to the same page of the other language, where there is one."""
    config.extra["alternate"] = alternates(page.file.src_uri, config.extra["language"])
    return context


def alternates(src_uri: str, language: str) -> list[dict[str, str]]:
    """Return the entries of the language menu; addresses are relative to the root of the build."""
    page = posixpath.splitext(src_uri)[0] + ".html"
    if language == "zh":
        english, chinese = f"../{page}", page
    else:
        exists = (ROOT / "docs" / "zh" / src_uri).exists()
        english, chinese = page, f"zh/{page if exists else 'index.html'}"
    return [
        {"name": "English", "link": english, "lang": "en"},
        {"name": "中文", "link": chinese, "lang": "zh"},
    ]


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:
    depth = page.file.dest_uri.count("/")
    return extract(ALTERNATE.sub("", output), "../" * depth, _extracted)


def on_post_build(*, config: MkDocsConfig) -> None:
    folder = Path(config.site_dir)
    write(_extracted, folder)
    for name in UNUSED:
        (folder / name).unlink(missing_ok=True)

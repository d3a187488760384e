"""Links between documents: paths of the repository become paths of the site.

Documents link as GitHub needs it (`../deploy/README.md`, `docs/settings.md`). Inside one build the
link becomes relative to the page's place in the site. The Chinese build is a folder of the English
site, so a link from a Chinese page to an English one becomes HTML, which MkDocs does not check;
the tests of the site check it.
"""

import posixpath
import re

#: Documents outside of docs/ that are pages of the English site.
PROJECT_PAGES = {
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "HACKING.md": "project/hacking.md",
    "SECURITY.md": "project/security.md",
    "deploy/README.md": "deployment.md",
}
ENGLISH = "docs"
LINK = re.compile(r"(?<!!)\[((?:[^\[\]`]|`[^`\n]*`)+)\]\(([^()\s]+)\)")
FENCE = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)


def rewritten(markdown: str, src_uri: str, folder: str) -> str:
    """Return the text of a page of the build of `folder`, with links of the site."""
    parts = FENCE.split(markdown)
    return "".join(
        part if number % 2 else LINK.sub(lambda found: _link(found, src_uri, folder), part)
        for number, part in enumerate(parts)
    )


def _link(found: re.Match[str], src_uri: str, folder: str) -> str:
    label, (path, mark, anchor) = found[1], found[2].partition("#")
    if "://" in path or not path.endswith(".md"):
        return found[0]
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source(src_uri, folder)), path))
    page_folder = posixpath.dirname(src_uri)
    inside = uri(target, folder)
    if inside is not None:
        return f"[{label}]({posixpath.relpath(inside, page_folder or '.')}{mark}{anchor})"
    english = uri(target, ENGLISH)
    if folder == ENGLISH or english is None:
        return found[0]  # MkDocs names the broken link
    up = posixpath.relpath(posixpath.relpath(ENGLISH, folder), page_folder or ".")
    address = posixpath.join(up, posixpath.splitext(english)[0] + ".html")
    return f'<a href="{address}{mark}{anchor}">{label}</a>'


def source(src_uri: str, folder: str) -> str:
    """Return the path of a page's document in the repository."""
    if folder == ENGLISH:
        for path, page in PROJECT_PAGES.items():
            if page == src_uri:
                return path
    return posixpath.join(folder, src_uri)


def uri(path: str, folder: str) -> str | None:
    """Return the page of a document in the build of `folder`; None for documents of other builds.

    `docs/zh/…` is inside of `docs/`, but excluded from the English build.
    """
    if folder == ENGLISH and path in PROJECT_PAGES:
        return PROJECT_PAGES[path]
    if path.startswith(f"{folder}/") and not (folder == ENGLISH and path.startswith("docs/zh/")):
        return path.removeprefix(f"{folder}/")
    return None

"""Buttons that change a cluster stand beside the mark of a production cluster."""

import re

import pytest

from console.management.commands.translate import CONSOLE

MARK = '{% include "parts/production.html" %}'
#: Forms that change the console, not the cluster, or that lead to a page with the mark.
EXEMPT = {
    *("accounts", "alarms", "masking", "schemas", "search", "exports"),
    "frame/templates/parts/preferences.html",
    "services/jobs/templates/jobs/start_button.html",
    "services/jobs/templates/jobs/maintenance.html",
    "services/jobs/templates/jobs/detail_part.html",
    "services/clusters/templates/clusters/forget.html",
    "areas/messages/templates/message/export.html",
    # Protection, which only restricts changes; deletion has a page of its own.
    *(
        f"areas/{area}/templates/{area}/{name}.html"
        for area, names in (
            ("topics", ("frame", "list_rows")),
            ("groups", ("frame", "list_rows")),
            ("acl_users", ("detail", "list_rows")),
            ("acl_accounts", ("detail", "list_rows")),
        )
        for name in names
    ),
}
FORMS = sorted(
    str(path.relative_to(CONSOLE))
    for path in CONSOLE.rglob("*.html")
    if re.search(r'method="post"', path.read_text())
)


@pytest.mark.parametrize(
    "template", [each for each in FORMS if each not in EXEMPT and not EXEMPT & {*each.split("/")}]
)
def test_a_form_that_changes_a_cluster_has_the_mark(template: str) -> None:
    assert MARK in (CONSOLE / template).read_text()


def test_exempt_templates_exist() -> None:
    assert {each for each in EXEMPT if "/" in each} <= set(FORMS)

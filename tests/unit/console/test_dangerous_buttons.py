"""Every button of a template that deletes or stops something has a second step or a way back."""

import re
from pathlib import Path
from typing import Final

CONSOLE: Final = Path(__file__).resolve().parents[3] / "console"
BUTTON: Final = re.compile(r"<button\b([^>]*)>(.*?)</button>", re.DOTALL)
NAME: Final = re.compile(r'\bname="([a-z-]+)"')
#: Names of buttons that end, remove or switch off something.
ACTS: Final = {"delete", "end", "forget", "off", "remove", "removed", "revoke", "switch"}
#: Buttons by template and name, and why one press is enough.
CHECKED: Final = {
    # The page or the button asks, and another button acts.
    ("parts/confirmation.html", ""): "the second step",
    ("bulk/delete.html", "delete"): "the number of names is typed",
    ("resources/delete.html", ""): "the name is typed",
    ("masking/delete.html", "delete"): "the name is typed",
    ("masking/rule.html", "delete"): "asks for the name",
    ("replicas/elect.html", ""): "the name is typed",
    ("replicas/kill.html", ""): "a page with the consequences",
    ("clients/kick.html", ""): "a page with the consequences; the reason is typed",
    ("acl_accounts/list_rows.html", ""): "asks for the number of names",
    ("acl_users/list_rows.html", ""): "asks for the number of names",
    ("groups/list_rows.html", ""): "asks for the number of names",
    ("topics/list_rows.html", ""): "asks for the number of names",
    ("alarms/receiver.html", "remove"): "asks",
    ("alarms/rule.html", "remove"): "asks",
    ("clusters/credentials.html", "remove"): "asks",
    ("clusters/name_server_keys.html", "delete"): "previews",
    ("clusters/name_server_keys.html", "save"): "after the preview",
    ("accounts/security.html", "off"): "a code is typed",
    ("resources/edit_labels.html", "remove"): "removes a row of the form; Save changes the labels",
    # The same page undoes the act.
    ("clusters/read_only.html", "off"): "can be switched on again",
    ("alarms/rule_rows.html", "switch"): "can be switched on again",
    ("clusters/forget.html", ""): "a broker that registers again comes back",
    ("accounts/security.html", "end"): "the session's owner signs in again",
    ("accounts/user.html", "end"): "the session's owner signs in again",
}


def dangerous() -> set[tuple[str, str]]:
    found = set()
    for path in CONSOLE.rglob("templates/**/*.html"):
        template = path.as_posix().rpartition("/templates/")[2]
        for attributes, label in BUTTON.findall(path.read_text(encoding="utf-8")):
            named = NAME.search(attributes)
            name = named[1] if named else ""
            is_marked = "danger" in attributes or '{% icon "trash" %}' in label
            if name in ACTS or is_marked or "confirmation.name" in attributes:
                found.add((template, name))
    return found


def test_every_dangerous_button_is_checked() -> None:
    assert dangerous() == set(CHECKED), "add a `Confirmation`, or say why one press is enough"

"""Definitions: reading with the line of each fault, stable writing, differences."""

import pytest

from core_broker.definitions import writing
from core_broker.definitions.comparing import Action, compare
from core_broker.definitions.model import (
    DOCUMENT_BYTES_MAX,
    EVERYWHERE,
    DefinitionsError,
    Document,
    Placement,
    placed,
)
from core_broker.definitions.reading import NODES_MAX, read
from core_broker.definitions.writing import block, object_texts, to_yaml

HEAD = "format: gantry/definitions/1\n"
TOPIC = {"order": False, "perm": 6, "readQueueNums": 8, "writeQueueNums": 8}
FEWER = {**TOPIC, "readQueueNums": 4}
ODD_NAMES = [
    "on",
    "1",
    "%RETRY%",
    "a:b",
    "#x",
    "with blank",
    "消息",
    "null",
    "x'\"\\y",
    "😀",
    "-",
    "~",
]


def full() -> Document:
    topics: dict[str, Placement] = {name: {EVERYWHERE: TOPIC} for name in ODD_NAMES}
    topics["apart"] = {"broker-a": TOPIC, "broker-b": FEWER}
    objects: dict[str, dict[str, Placement]] = {
        "topics": topics,
        "groups": {"g": {EVERYWHERE: {"consumeEnable": True, "retryMaxTimes": -1}}},
        "users": {"alice": {EVERYWHERE: {"userStatus": "enable", "userType": "Normal"}}},
        "acls": {
            "User:alice": {
                EVERYWHERE: {
                    "Custom": [
                        {
                            "actions": ["Pub", "Sub"],
                            "decision": "Allow",
                            "resource": "Topic:*",
                            "sourceIps": ["10.0.0.0/8", "::1"],
                        }
                    ]
                }
            }
        },
    }
    return Document(objects)


def test_a_written_document_is_read_as_it_was() -> None:
    text = to_yaml(full())
    again = read(text)
    assert again.objects == full().objects
    assert to_yaml(again) == text


def test_equal_values_of_other_types_keep_their_texts() -> None:
    switch, number = {EVERYWHERE: {"order": True}}, {EVERYWHERE: {"order": 1}}
    text = to_yaml(Document({"topics": {"a": switch, "b": number, "c": switch}}))
    assert "a: {order: true}" in text
    assert "b: {order: 1}" in text
    assert "c: {order: true}" in text


def test_json_is_read_too() -> None:
    text = '{"format": "gantry/definitions/1", "topics": {"orders": {"perm": 6}}}'
    assert read(text).objects == {"topics": {"orders": {EVERYWHERE: {"perm": 6}}}}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "empty"),
        ("topics: {}", "no “format"),
        ("format: gantry/definitions/9", "line 1: format is not"),
        (f"{HEAD}topic: {{}}", "line 2: the document has no key 'topic'; did you mean 'topics'?"),
        (f"{HEAD}topics: [a]", "topics is no map"),
        (f"{HEAD}topics:\n  t: 7", "line 3: t is no map"),
        (f"{HEAD}topics:\n  t: {{prem: 6}}", "no key 'prem'; did you mean 'perm'?"),
        (f"{HEAD}topics:\n  t: {{perm: six}}", "line 3: perm is no number from 0 to 7"),
        (f"{HEAD}topics:\n  t: {{perm: 99999999999999999999}}", "perm is no number"),
        (f"{HEAD}topics:\n  t: {{readQueueNums: 0}}", "readQueueNums is no number from 1"),
        (f"{HEAD}topics:\n  t: {{order: maybe}}", "order is neither true nor false"),
        (f"{HEAD}topics:\n  t: {{order: [true]}}", "order is a list or map"),
        (f"{HEAD}topics:\n  t: {{perm: 6}}\n  t: {{perm: 4}}", "has the key 't' twice"),
        (f"{HEAD}topics:\n  t: {{brokers: {{}}}}", "names no broker"),
        (f"{HEAD}users:\n  u: {{userType: Root}}", "userType is none of Super, Normal"),
        (f"{HEAD}acls:\n  User:u: {{Costum: []}}", "did you mean 'Custom'?"),
        (f"{HEAD}acls:\n  User:u: {{Custom: [{{resource: Topic:a}}]}}", "has no actions"),
        (f"{HEAD}topics: &a {{}}\ngroups: *a", "anchors and aliases|no YAML"),
        (f"{HEAD}topics: !!python/object:os.system {{}}", "tag"),
        (f"{HEAD}topics: {{", "no YAML"),
        (f"{HEAD}topics:\n  {'[' * 5000}", "no YAML|depth|nest"),
        (f"{HEAD}topics:\n  {'n' * 2000}: {{}}", "no YAML|too long"),
        (b"\xff\xfe\x00", "UTF-8"),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_its_line(text: str | bytes, fault: str) -> None:
    with pytest.raises(DefinitionsError, match=fault.replace("?", r"\?")):
        read(text)


def test_a_document_is_bounded_in_bytes_and_in_values() -> None:
    with pytest.raises(DefinitionsError, match="the maximum is 4 MiB"):
        read(b"x" * (DOCUMENT_BYTES_MAX + 1))
    bomb = "topics:\n  a: &a [x, x]\n  b: &b [*a, *a]\n  c: [*b, *b]\n"
    with pytest.raises(DefinitionsError, match=r"anchors and aliases|no YAML"):
        read(HEAD + bomb)


def test_too_many_values_end_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    assert NODES_MAX > 100_000
    monkeypatch.setattr("core_broker.definitions.reading.NODES_MAX", 50)
    with pytest.raises(DefinitionsError, match="more than 50 keys and values"):
        read(f"{HEAD}topics: [{','.join('x' * 60)}]")


def test_sections_of_other_programs_are_plain_values() -> None:
    document = read(f"{HEAD}protection: {{topics: [a, b]}}", ["protection"])
    assert document.more == {"protection": {"topics": ["a", "b"]}}
    assert read(to_yaml(document), ["protection"]).more == document.more


def test_a_block_is_written_as_its_map() -> None:
    labels = {
        "orders": {"tier": "gold", "owner": "no", "link": "https://x/?q=a: b", "name": "北京 é 😀"},
        "on": {"note": 'say "hi"', "team": "null", "a.b": "1"},
    }
    blocks = {name: block(each, depth=3) for name, each in labels.items()}
    plain, written = ({"labels": {"topics": each}} for each in (labels, blocks))
    text = to_yaml(Document(more=written))
    assert text == to_yaml(Document(more=plain))
    assert read(text, ["labels"]).more == plain


HOSTILE = [
    *ODD_NAMES,
    *('say "hi"', "it's", "a: b # c", "- x", "[a, b]", "{a: b}", "a\nb\r\tc", "\x00\x1b", ""),
    *("\u0085\u2028\ufeff", "\\", "!tag", "&x *y", "| >", "No", "é", "0x1f", "1_000"),
]


def hostile() -> Document:
    """Objects of all kinds with names and texts that need quotes, and without fields."""
    entries = [
        {"actions": [text, *HOSTILE], "decision": text, "resource": f"Topic:{text}"}
        for text in HOSTILE
    ]
    lists: dict[str, Placement] = {
        f"User:{text}": {EVERYWHERE: {text: [{**entry, "sourceIps": [text]}], "Custom": entries}}
        for text, entry in zip(HOSTILE, entries, strict=True)
    }
    lists["no policies"] = {EVERYWHERE: {}}
    lists["no entries"] = {EVERYWHERE: {"Custom": [], "Default": [{"actions": []}]}}
    lists["apart"] = {text: {"Custom": entries[:2]} for text in HOSTILE}
    plain: dict[str, Placement] = {text: {EVERYWHERE: {"x": text}} for text in HOSTILE}
    plain["types"] = {"a": {"x": 1}, "b": {"x": True}, "c": {"x": "1"}, "d": {"x": None}}
    return Document({"topics": plain, "groups": {}, "users": plain, "acls": lists})


def test_kept_texts_are_written_as_their_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    for document in (hostile(), full(), Document()):
        kept, plain = object_texts(document), to_yaml(document, ["a\nb"])
        assert to_yaml(document, ["a\nb"], kept) == plain
        part = Document(
            {kind: dict([*each.items()][::2]) for kind, each in document.objects.items()}
        )
        assert to_yaml(part, kept=kept) == to_yaml(part)
    document = hostile()
    kept, plain = object_texts(document), to_yaml(document)
    monkeypatch.setattr(writing, "_object", None)
    assert to_yaml(document, kept=kept) == plain, "no object is written anew"


def test_texts_of_too_many_objects_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "OBJECTS_MAX", hostile().count - 1)
    assert object_texts(hostile()) == {}


def test_placements_are_short() -> None:
    assert placed({"a": TOPIC, "b": TOPIC}, 2) == {EVERYWHERE: TOPIC}
    assert placed({"b": FEWER, "a": TOPIC}, 2) == {"a": TOPIC, "b": FEWER}
    assert placed({"a": TOPIC}, 2) == {"a": TOPIC}


def test_differences_are_found_by_broker() -> None:
    present = Document({"topics": {"same": {EVERYWHERE: TOPIC}, "part": {"a": TOPIC}, "x": {}}})
    wanted = Document(
        {
            "topics": {
                "same": {EVERYWHERE: {"perm": 6}},
                "part": {EVERYWHERE: {"perm": 4}},
                "new": {"b": {"perm": 6}},
                "lost": {"c": {"perm": 6}},
            },
            "users": {"u": {EVERYWHERE: {"userType": "Normal"}}},
        }
    )
    items = {item.name: item for item in compare(wanted, present, ["a", "b"])}
    assert {name: item.action for name, item in items.items()} == {
        "same": Action.SAME,
        "part": Action.UPDATE,
        "new": Action.CREATE,
        "lost": Action.PROBLEM,
        "x": Action.EXTRA,
        "u": Action.PROBLEM,
    }
    part = items["part"]
    changes = [(each.broker, each.field, each.before, each.after) for each in part.changes]
    assert changes == [("a", "perm", 6, 4), ("b", "perm", None, 4)]
    assert part.missing == ("b",)
    assert part.wanted is not None
    assert part.wanted["a"]["readQueueNums"] == 8, "a field that the document lacks is kept"
    assert "no broker c" in items["lost"].problem
    assert "password" in items["u"].problem


def test_a_password_is_only_used_for_new_users_and_never_shown() -> None:
    secret = {"password": "sesame-sesame", "userType": "Normal"}
    wanted = Document({"users": {"u": {EVERYWHERE: secret}}})
    [new] = compare(wanted, Document({"users": {}}), ["a"])
    assert new.action is Action.CREATE
    assert "sesame" not in str(new.changes)
    held = Document({"users": {"u": {EVERYWHERE: {"userType": "Normal"}}}})
    [same] = compare(wanted, held, ["a"])
    assert same.action is Action.SAME

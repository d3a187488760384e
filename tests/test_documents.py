"""What documents promise exists: settings, variables, make targets, modules, files, links.

Run by `make lint` and again with all tests.
"""

import ast
import re
from dataclasses import MISSING
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from django.core.management import get_commands, load_command_class

from core_broker.config import BrokerConfig, ControllerConfig, NamesrvConfig, Settings
from core_broker.config.unsupported import REFUSED_VALUES
from core_broker.mqadmin.catalog import find_name
from core_broker.mqadmin.cli import cli as mqadmin
from core_broker.mqadmin.cli import load
from core_broker.mqstore.cli import cli as mqstore
from tests.support.document_blocks import (
    COMMANDS,
    INDENTED,
    LANGUAGES,
    blocks_of,
    commands,
    outside_of_blocks,
)
from tests.support.source_tree import ROOT, texts

#: Documents, and their translations: sections, blocks, tables and names in code are the same.
TRANSLATIONS = {
    "README.md": "README.zh-CN.md",
    "docs/console.md": "docs/zh/console.md",
    "docs/operations.md": "docs/zh/operations.md",
    "docs/quickstart.md": "docs/zh/quickstart.md",
}


@pytest.mark.parametrize("settings", [BrokerConfig, NamesrvConfig, ControllerConfig])
def test_every_setting_is_documented_with_its_default(settings: type[Settings]) -> None:
    document = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    values = dict(settings().items())
    wrong = []
    for key, field in settings.keys().items():
        row = f"| `{key}` | "
        if field.default_factory is MISSING:  # others depend on the machine
            row += f"`{values[key]}` |" if values[key] else "empty |"
        if row not in document:
            wrong.append(row)
    assert not wrong


def settings_rows() -> dict[str, tuple[str, str]]:
    """Key -> its columns "live" and "meaning" in docs/settings.md, by program and key."""
    document = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    rows = {}
    for program, kind in (
        ("## Broker", BrokerConfig),
        ("## Name server", NamesrvConfig),
        ("## Controller", ControllerConfig),
    ):
        section = document.partition(f"\n{program}\n")[2].partition("\n## ")[0]
        for key, live, meaning in re.findall(
            r"^\| `([\w.]+)` \|[^|]*\|([^|]*)\|([^|]*)\|$", section, re.M
        ):
            rows[f"{kind.__name__}.{key}"] = (live.strip(), meaning.strip())
    return rows


@pytest.mark.parametrize("settings", [BrokerConfig, NamesrvConfig, ControllerConfig])
def test_settings_are_documented_as_live_and_as_unused_exactly_where_they_are(
    settings: type[Settings],
) -> None:
    rows = settings_rows()
    updatable, no_effect = settings.updatable_keys(), settings.no_effect_keys()
    wrong = []
    for key in settings.keys():  # noqa: SIM118
        live, meaning = rows[f"{settings.__name__}.{key}"]
        unused = f"Not used: {no_effect[key]}." if key in no_effect else ""
        is_described = meaning.startswith(unused) if unused else "Not used" not in meaning
        if (live == "yes") != (key in updatable) or not is_described:
            wrong.append(key)
    assert not wrong


def test_settings_are_flagged_without_effect_exactly_where_no_code_reads_them() -> None:
    """Refused keys need no flag: their only accepted value is the default."""
    refused = {key for key, _ in REFUSED_VALUES}
    wrong = []
    for settings, other in (
        (BrokerConfig, ("namesrv/", "core_broker/controller/")),
        (NamesrvConfig, ("core_broker/broker/",)),
        (ControllerConfig, ("namesrv/", "core_broker/broker/")),
    ):
        accessed = {
            node.attr
            for file, text in texts(".py")
            if file.startswith(("core_broker/", "namesrv/")) and not file.startswith(other)
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Attribute)
        }
        wrong += [
            f"{settings.__name__}.{key}"
            for key, field in settings.keys().items()
            if key not in refused and (key in settings.no_effect_keys()) == (field.name in accessed)
        ]
    assert not wrong


def test_every_variable_of_the_console_is_documented() -> None:
    source = (ROOT / "console" / "environment.py").read_text(encoding="utf-8")
    variables = set(re.findall(r'\bread\.[a-z]+\("([A-Z_]+)"', source))
    assert variables, "console/environment.py reads its variables in another way now"
    document = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert not [variable for variable in variables if f"`{variable}`" not in document]


def test_every_make_target_explains_itself() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z-]+):(.*)$", makefile, re.M)
    assert targets
    assert not [target for target, rest in targets if "## " not in rest]


def test_every_make_target_in_the_documents_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    missing = {
        f"{file}: make {target}"
        for file, text in texts(".md")
        for code in (*re.findall(r"`([^`\n]+)`", text), *map(" ".join, commands(text)))
        for target in re.findall(r"(?:^|[\s;&])make ([a-z][a-z-]*)", code)
        if target not in targets
    }
    assert not missing


def test_every_make_target_for_users_is_in_hacking() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    hacking = (ROOT / "HACKING.md").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z-]+):.*## ", makefile, re.M)
    assert not [name for name in targets if name != "help" and f"make {name}" not in hacking]


def test_every_module_that_the_documents_start_exists() -> None:
    missing = {
        f"{file}: python -m {module}"
        for file, text in texts(".md")
        for module in re.findall(r"python3? -m ([a-z][\w.]*)", text)
        if find_spec(module) is None
    }
    assert not missing


def documented_commands(*programs: str) -> list[tuple[str, list[str]]]:
    """(document, words behind the program's name) of each command in the documents' blocks."""
    found = []
    for file, text in texts(".md"):
        for words in commands(text):
            name = words[0].rpartition("/")[2]
            rest = words[1:]
            if name.startswith("python") and rest[:1] == ["-m"]:
                name, rest = rest[1].rpartition(".")[2], rest[2:]
            elif name.startswith("python") and rest:
                name, rest = rest[0].rpartition("/")[2], rest[1:]
            if name in programs and rest:
                found.append((file, rest))
    return found


def test_every_documented_command_of_mqadmin_has_its_options() -> None:
    wrong = []
    documented = documented_commands("mqadmin")
    for file, (name, *rest) in documented:
        if name == "help":
            continue
        found = find_name(name)
        if found is None:
            wrong.append(f"{file}: mqadmin {name}")
        elif problem := problem_of(mqadmin, load(found), rest):
            wrong.append(f"{file}: mqadmin {name}: {problem}")
    assert not wrong
    assert len(documented) > 30


def test_every_documented_command_of_mqstore_has_its_options() -> None:
    documented = documented_commands("mqstore")
    wrong = [
        f"{file}: mqstore {name}: {problem}"
        for file, (name, *rest) in documented
        if (problem := problem_of(mqstore, mqstore.commands[name], rest))
    ]
    assert not wrong
    assert documented


def problem_of(group: click.Command, command: click.Command, words: list[str]) -> str:
    """Return what click says against the options among the words; "" when the options exist."""
    # Without the group's names of the help option, click would remember others for the command.
    parent = click.Context(group, **group.context_settings)
    with parent, click.Context(command, parent) as context:
        try:
            command.make_parser(context).parse_args(list(words))
        except click.UsageError as problem:
            return problem.format_message()
    return ""


def test_every_documented_command_of_manage_py_has_its_options() -> None:
    known = get_commands()
    wrong = []
    documented = documented_commands("manage.py")
    for file, (name, *rest) in documented:
        if name not in known:
            wrong.append(f"{file}: manage.py {name}")
            continue
        owner = known[name]
        parser = load_command_class(str(owner), name).create_parser("manage.py", name)
        options = {word.partition("=")[0] for word in rest if word.startswith("--")}
        wrong += [
            f"{file}: manage.py {name} {option}"
            for option in options - set(parser._option_string_actions)
        ]
    assert not wrong
    assert documented


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("mqadmin topicStatus -t x --output json | jq '.queues'", ["mqadmin", "jq"]),
        ("CONSOLE_URL=http://h NAMESRV_ADDR=a:1 mqadmin help  # words", ["mqadmin"]),
        (". var/conf/client.env; mqadmin clusterList", [".", "mqadmin"]),
        ("not closed '", []),
    ],
)
def test_the_rule_of_commands_sees_each_command(line: str, found: list[str]) -> None:
    assert [words[0] for words in commands(f"```sh\n{line}\n```\n")] == found


def test_the_rule_of_options_can_fail() -> None:
    assert "No such option" in problem_of(mqadmin, load("topicStatus"), ["-t", "x", "--absent"])


def test_units_start_programs_that_exist() -> None:
    units = list((ROOT / "deploy" / "systemd").glob("*.service"))
    assert units
    for unit in units:
        command = re.search(r"^ExecStart=\S+/python -m (\S+)", unit.read_text(), re.M)
        assert command, unit.name
        assert find_spec(command[1]), unit.name


@pytest.mark.parametrize("english", TRANSLATIONS)
def test_a_translation_has_every_section_block_row_name_and_link(english: str) -> None:
    """Names are words in code: settings, commands, paths, states."""
    documents = (english, TRANSLATIONS[english])
    headings, blocks, parts = zip(*map(translated_parts, documents), strict=True)
    assert headings[0] == headings[1]
    assert blocks[0] == blocks[1]
    assert not [
        f"{title}: {kind} {found ^ other}"
        for title, section, translated in zip(titles(english), *parts, strict=True)
        for kind, found, other in zip(("rows", "names", "links"), section, translated, strict=True)
        if found != other
    ]


def titles(document: str) -> list[str]:
    text = outside_of_blocks((ROOT / document).read_text(encoding="utf-8"))
    return ["the beginning", *re.findall(r"^#+ (.+)$", text, re.M)]


def translated_parts(
    document: str,
) -> tuple[list[int], list[str], list[tuple[int, set[str], set[str]]]]:
    """Levels of the headings, blocks without remarks, and rows, names and links by section."""
    text = (ROOT / document).read_text(encoding="utf-8")
    blocks = [re.sub(r"(?m)[ ]+# .*$", "", each.code) for each in blocks_of(document)]
    text = outside_of_blocks(text)
    sections = re.split(r"^#+ .+$", text, flags=re.M)
    parts = [
        (
            len(re.findall(r"^\|", section, re.M)),
            {" ".join(name.split()) for name in re.findall(r"`([^`]+)`", section)},
            {linked(document, target) for target in re.findall(r"\]\(([^)\s]+)\)", section)},
        )
        for section in sections
    ]
    return [len(each) for each in re.findall(r"^(#+) ", text, re.M)], blocks, parts


def linked(document: str, target: str) -> str:
    """The document of a link; a translation counts as its original."""
    if "://" in target:
        return target
    path = (ROOT / document).parent.joinpath(target.partition("#")[0] or Path(document).name)
    name = path.resolve().relative_to(ROOT).as_posix()
    originals = {translation: original for original, translation in TRANSLATIONS.items()}
    return originals.get(name, name)


def test_every_block_is_run_or_read_or_says_why_not() -> None:
    """A test that runs blocks of a page names the page."""
    wrong = []
    translations = TRANSLATIONS.values()
    for document in documents():
        for block in blocks_of(document):
            if block.language not in LANGUAGES:
                wrong.append(f"{block.place}: the language is none of {sorted(LANGUAGES)}")
            elif document in translations and (block.runner or block.excuse):
                wrong.append(f"{block.place}: the comment belongs to the English page")
            elif document in translations or block.language not in COMMANDS or block.excuse:
                continue
            elif not block.runner:
                wrong.append(f"{block.place}: no comment `run by …` or `not run: …`")
            elif not (ROOT / block.runner).is_file():
                wrong.append(f"{block.place}: {block.runner} does not exist")
            elif Path(document).stem not in (ROOT / block.runner).read_text(encoding="utf-8"):
                wrong.append(f"{block.place}: {block.runner} does not name the page")
    assert not wrong


def test_no_block_is_indented() -> None:
    """Indented blocks have no language, and no comment says who runs them."""
    indented = [
        f"{document}: {found}"
        for document in documents()
        for found in INDENTED.findall(
            outside_of_blocks((ROOT / document).read_text(encoding="utf-8"))
        )
    ]
    assert not indented


def test_the_rule_of_blocks_can_fail() -> None:
    text = "# Page\n\n<!-- blocks run by a.py -->\n```sh\nx\n```\n\n```json\n{}\n```\n"
    bare, excused = "```python\ny\n```\n", "<!-- not run: no reason -->\n```sh\nz\n```\n"
    found = [(each.line, each.runner, each.excuse) for each in blocks_of("p.md", text + excused)]
    assert found == [(4, "a.py", ""), (8, "", ""), (12, "", "no reason")]
    assert [(each.runner, each.excuse) for each in blocks_of("p.md", bare)] == [("", "")]


def documents() -> list[str]:
    return [file for file, _ in texts(".md")]


def test_files_that_commands_name_exist() -> None:
    missing = {
        f"{file}: {word}"
        for file, text in texts(".md")
        for words in commands(text)
        for word in words
        if word.startswith(("deploy/", "docs/", "tests/", "tools/"))
        if not list(ROOT.glob(word))
    }
    assert not missing


def test_architecture_names_files_that_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    roots = ("benchmarks", "console", "core_broker", "namesrv", "spark_jobs", "tests", "trace")
    named = re.findall(rf"`((?:{'|'.join(roots)})/[\w./]+)`", text)
    assert named
    assert not [path for path in named if not (ROOT / path).exists()]


def test_documents_link_to_files_that_exist() -> None:
    broken = [
        f"{file}: {target}"
        for file, text in texts(".md")
        for target in re.findall(r"\]\(([^)#\s]+)", text)
        if "://" not in target and not (ROOT / file).parent.joinpath(target).exists()
    ]
    assert not broken

"""exportDefinitions and apply: the definitions of a cluster as one YAML file."""

import sys
from pathlib import Path
from typing import Any, Final

from core_broker.definitions import cluster
from core_broker.definitions.cluster import Brokers, Outcome, brokers_of, gather
from core_broker.definitions.comparing import Action, Item, compare
from core_broker.definitions.model import DOCUMENT_BYTES_MAX, KINDS
from core_broker.definitions.reading import read
from core_broker.definitions.writing import to_yaml
from core_broker.mqadmin.command import command, text
from core_broker.mqadmin.files import write_file
from core_broker.mqadmin.lookup import brokers_of_cluster
from core_broker.mqadmin.session import ExitCode, NotFound, PartialFailure, Session

STDIN: Final = "-"
#: Sections that only the console applies.
CONSOLE_SECTIONS: Final = ("alarms", "labels", "masking", "protection")
SIGNS: Final = {
    Action.CREATE: "+",
    Action.UPDATE: "~",
    Action.SAME: "=",
    Action.EXTRA: "?",
    Action.PROBLEM: "!",
}


@command("exportDefinitions")
@text("-c", "--clusterName", help="cluster to export | default: all clusters of the name server")
@text("-f", "--filePath", help="file to write | default: standard output")
async def export_definitions(
    session: Session, cluster_name: str | None, file_path: str | None
) -> None:
    """Exports topics, groups, users without passwords, and access control lists. Equal definitions
    give equal bytes. A comment names each part that the brokers do not show to this account."""
    brokers = await _brokers(session, cluster_name)
    document = await gather(session.admin, brokers)
    notes = document.notes
    content = to_yaml(document, notes)
    if file_path is None:
        session.out.show({"definitions": content, "notes": notes}, content.splitlines())
        return
    await write_file(Path(file_path), content.encode())
    lines = [*(f"# {note}" for note in notes), f"export {file_path} success"]
    session.out.show({"path": file_path, "notes": notes}, lines)


@command("apply", destructive=True)
@text("-f", "--filePath", required=True, help="file with definitions; - reads standard input")
@text("-c", "--clusterName", help="cluster to change | default: all clusters of the name server")
async def apply(session: Session, file_path: str, cluster_name: str | None) -> None:
    """Creates and changes what differs from the file; deletes nothing. With --dry-run the exit code
    is 0 when the cluster has the definitions, and 2 when the cluster differs; 1 is an error."""
    wanted = read(_content(file_path), CONSOLE_SECTIONS)
    lines = [f"# {each} is kept by the console, and left as it is" for each in wanted.more]
    brokers = await _brokers(session, cluster_name)
    kinds = [kind for kind in KINDS if kind in wanted.objects]
    present = await gather(session.admin, brokers, kinds)
    lines += [f"# {note}" for note in present.notes]
    items = compare(wanted, present, brokers.names)
    drift = [item for item in items if item.is_drift]
    results = {} if session.dry_run else await cluster.apply(session.admin, brokers, items)
    failed = sum(any(each.error for each in outcomes) for outcomes in results.values())
    for item in items:
        lines += _lines(item, results.get((item.kind, item.name)))
    if not drift:
        lines.append("The cluster has these definitions.")
    elif not session.dry_run:
        lines.append(f"{len(drift) - failed} applied, {failed} failed.")
    session.out.show({"items": [_record(each, results) for each in items]}, lines)
    if failed:
        session.warn(f"{failed} of {len(drift)} objects failed; the output names each reason.")
        raise PartialFailure(ExitCode.FAILED)
    if drift and session.dry_run:
        session.warn(f"the cluster differs from the file in {len(drift)} objects.")
        raise PartialFailure(ExitCode.DRIFT)


async def _brokers(session: Session, cluster_name: str | None) -> Brokers:
    info = await session.admin.cluster_info()
    if cluster_name is not None:
        brokers_of_cluster(info, cluster_name)  # raises NotFound
    return brokers_of(info, cluster_name)


def _content(file_path: str) -> bytes:
    """At most one byte more than a document may have: the reader refuses the rest."""
    try:
        if file_path == STDIN:
            return sys.stdin.buffer.read(DOCUMENT_BYTES_MAX + 1)
        with Path(file_path).open("rb") as file:
            return file.read(DOCUMENT_BYTES_MAX + 1)
    except OSError as error:
        raise NotFound(f"{file_path} cannot be read: {error.strerror or error}.") from None


def _lines(item: Item, outcomes: tuple[Outcome, ...] | None) -> list[str]:
    if item.action is Action.SAME:
        return []
    lines = [f"{SIGNS[item.action]} {item.kind} {item.name}{_suffix(item)}"]
    lines += [
        f"    {change.broker} {change.field}: {change.before_text} -> {change.after_text}"
        for change in item.changes
        if change.field
    ]
    errors = [each for each in outcomes or () if each.error and not item.problem]
    return lines + [f"    failed on {each.broker}: {each.error}" for each in errors]


def _suffix(item: Item) -> str:
    if item.action is Action.EXTRA:
        return " (only in the cluster)"
    return f": {item.problem}" if item.problem else ""


def _record(item: Item, results: dict[tuple[str, str], tuple[Outcome, ...]]) -> dict[str, Any]:
    return {
        "kind": item.kind,
        "name": item.name,
        "action": item.action.value,
        "problem": str(item.problem) or None,
        "changes": [
            {
                "broker": change.broker,
                "field": change.field,
                "before": change.before,
                "after": change.after,
            }
            for change in item.changes
        ],
        "outcomes": [
            {"broker": each.broker, "error": each.error}
            for each in results.get((item.kind, item.name), ())
        ],
    }

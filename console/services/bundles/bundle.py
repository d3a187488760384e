"""A bundle: the parts, masked, in one ZIP."""

import logging
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Final

from django.utils.translation import override

from console.gateway import Cluster, now_ms
from console.services.bundles.masking import Mask, known_secrets
from console.services.bundles.parts import PARTS, as_json

log = logging.getLogger(__name__)

#: Maximum size of one file before compression, characters.
FILE_CHARS_MAX: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Written:
    """The written files, the parts that failed with the reason, and the number of parts."""

    files: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    parts: int = 0


def write(cluster: Cluster, output: IO[bytes]) -> Iterator[Written]:
    """Write the ZIP; yield the state after each part."""
    mask = Mask(known_secrets())
    files: list[str] = []
    failed: dict[str, str] = {}
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        for count, (name, part) in enumerate(PARTS.items(), 1):
            try:
                with override("en"):
                    for path, text in part(cluster):
                        archive.writestr(path, mask.text(text[:FILE_CHARS_MAX]))
                        files.append(path)
            except Exception as error:
                log.warning("the part %s of a debug bundle failed", name, exc_info=True)
                failed[name] = mask.text(f"{type(error).__name__}: {error}")
            yield Written(tuple(files), dict(failed), count)
        manifest = {"cluster": cluster.name, "taken_ms": now_ms(), "files": files, "failed": failed}
        archive.writestr("manifest.json", mask.text(as_json(manifest)))
    yield Written((*files, "manifest.json"), failed, len(PARTS))

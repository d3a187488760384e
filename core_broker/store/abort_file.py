"""The file `abort`: exists while a broker runs, and after a crash.

Its content is the boot id of the operating system (`Files.boot_id`); Java ignores the content. An
empty file, or one of another boot, counts as written before a power cut: recovery then also looks
for holes in the log.
"""

from pathlib import Path

from core_broker.store.files import Files, read_file, replace_file
from core_broker.store.full_disk import is_disk_full


def write_abort_file(files: Files, path: Path) -> None:
    """Write the file; on a full disk an existing or empty file must suffice.

    Raises OSError when no file can be created.
    """
    boot_id = files.boot_id().encode()
    if not files.exists(path):
        files.open(path, create=True).close()
    if read_file(files, path) != boot_id:
        try:
            replace_file(files, path, boot_id)
        except OSError as error:
            if not is_disk_full(error):
                raise
    files.sync_dir(path.parent)

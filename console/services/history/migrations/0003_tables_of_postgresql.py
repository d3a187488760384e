"""Tables of the history in PostgreSQL; a SQLite database has none, for its history is in files.

Data is packed already: PostgreSQL does not compress it again. The tables lose a part of their rows
each hour or day, so autovacuum runs more often than by default.
"""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

PACKED = ("frame", "hour", "day")
CREATE = (
    """CREATE TABLE history_name (
      cluster varchar(63) NOT NULL, scope smallint NOT NULL, slot integer NOT NULL,
      name text NOT NULL, first_ms bigint NOT NULL, last_ms bigint NOT NULL,
      PRIMARY KEY (cluster, scope, slot), UNIQUE (cluster, scope, name)
    )""",
    """CREATE TABLE history_frame (
      cluster varchar(63) NOT NULL, metric smallint NOT NULL, at_ms bigint NOT NULL,
      data bytea NOT NULL, PRIMARY KEY (cluster, metric, at_ms)
    )""",
    *(
        f"""CREATE TABLE history_{table} (
          cluster varchar(63) NOT NULL, metric smallint NOT NULL, segment integer NOT NULL,
          begin_ms bigint NOT NULL, data bytea NOT NULL,
          PRIMARY KEY (cluster, metric, segment, begin_ms)
        )"""
        for table in ("hour", "day")
    ),
    *(
        f"CREATE INDEX history_{table}_begin ON history_{table} (cluster, begin_ms, metric)"
        for table in ("hour", "day")
    ),
    """CREATE TABLE history_pace (
      cluster varchar(63) NOT NULL, scope smallint NOT NULL, interval_ms bigint NOT NULL,
      PRIMARY KEY (cluster, scope)
    )""",
    *(f"ALTER TABLE history_{table} ALTER COLUMN data SET STORAGE EXTERNAL" for table in PACKED),
    *(
        f"""ALTER TABLE history_{table} SET (
          autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_scale_factor = 0.05
        )"""
        for table in PACKED
    ),
)
DROP = "DROP TABLE history_name, history_frame, history_hour, history_day, history_pace"


def create(_apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    if editor.connection.vendor == "postgresql":
        for statement in CREATE:
            editor.execute(statement)


def drop(_apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    if editor.connection.vendor == "postgresql":
        editor.execute(DROP)


class Migration(migrations.Migration):
    dependencies = [("history", "0002_delete_lease")]

    operations = [migrations.RunPython(create, drop)]
